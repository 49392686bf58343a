frt 1

binding flashrt_smolvla_vision {
  """The vision_ffn of flash-rt's binding smolvla_vision."""
  status imported "lerobot below 0.6 pins torch below 2.11: its classes could not be built and run"
  evidence "Imported from flash-rt, bindings/smolvla_vision.yaml, sha256 175792d81f0966f2."
  host lerobot ">=0.5,<0.6"
  dims { D = 768, F = 3072, L = 12 }

  each i in 0..L {
    seat ffn : vision_ffn.mlp version 2 at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = gelu
      slot w_fc1 = fc1.weight : out_in
      slot b_fc1 = fc1.bias
      slot w_fc2 = fc2.weight : out_in
      slot b_fc2 = fc2.bias
      boundary at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i} {
        slot w_norm = layer_norm2.weight,
        slot b_norm = layer_norm2.bias
      }
    }
  }

  export flash_rt {
    boundary_dtype = "f32",
    m_profile[encode] = "medium vision_encode"
  }
}
