frt 1

binding flashrt_groot_n16_vision {
  """The vision_ffn of flash-rt's binding groot_n16_vision."""
  status imported "isaac_gr00t is on no package index: nothing of it could be looked at"
  evidence "Imported from flash-rt, bindings/groot_n16_vision.yaml, sha256 c03b94b44c51a0c2."
  host isaac_gr00t "n1.6"
  dims { D = 1152, F = 4304, L = 27 }

  each i in 0..L {
    seat ffn : vision_ffn.mlp version 2 at backbone.model.vision_model.vision_model.encoder.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = gelu
      slot w_fc1 = fc1.weight : out_in
      slot b_fc1 = fc1.bias
      slot w_fc2 = fc2.weight : out_in
      slot b_fc2 = fc2.bias
      boundary at backbone.model.vision_model.vision_model.encoder.layers.{i} {
        slot w_norm = layer_norm2.weight,
        slot b_norm = layer_norm2.bias
      }
    }
  }

  export flash_rt {
    boundary_dtype = "bf16",
    m_profile[encode] = "medium vision_encode"
  }
}
