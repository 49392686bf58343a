frt 1

binding flashrt_pi05_vision {
  """The vision_ffn of flash-rt's binding pi05_vision."""
  status imported "lerobot below 0.6 pins torch below 2.11: its classes could not be built and run"
  evidence "Imported from flash-rt, bindings/pi05_vision.yaml, sha256 4eb1585bc8741c3f."
  host lerobot ">=0.5,<0.6"
  dims { D = 1152, F = 4304, L = 27 }

  each i in 0..L {
    seat ffn : vision_ffn.mlp version 2 at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = gelu
      slot w_fc1 = fc1.weight : out_in
      slot b_fc1 = fc1.bias
      slot w_fc2 = fc2.weight : out_in
      slot b_fc2 = fc2.bias
      boundary at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i} {
        slot w_norm = layer_norm2.weight,
        slot b_norm = layer_norm2.bias
      }
    }
  }

  export flash_rt {
    weights_map = "transformers",
    weights_root = "model",
    layout = "out_in_native",
    boundary_dtype = "float32",
    m_profile[vision] = "medium vision"
  }
}
