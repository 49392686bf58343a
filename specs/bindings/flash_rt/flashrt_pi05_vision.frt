frt 1

binding flashrt_pi05_vision {
  """The vision_ffn of flash-rt's binding pi05_vision."""
  status draft
  evidence "Imported from flash-rt, bindings/pi05_vision.yaml, sha256 4eb1585bc8741c3f."
  host lerobot ">=0.5.1,<0.6" class PI05Policy
  dims { D = 1152, F = 4304, L = 27 }

  each i in 0..L {
    seat ffn : vision_ffn.mlp version 2 at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = gelu
      variant norm_affine = learned
      param eps = model.model.paligemma_with_expert.paligemma.config.vision_config.layer_norm_eps
      slot w_fc1 = fc1.weight : out_in
      slot b_fc1 = fc1.bias
      slot w_fc2 = fc2.weight : out_in
      slot b_fc2 = fc2.bias
      point x_after_norm     = input
      point hidden_after_act = input of fc2
      boundary at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i} {
        x = input of layer_norm2,
        y = output,
        slot w_norm = layer_norm2.weight,
        slot b_norm = layer_norm2.bias
      }
      expect class (SiglipMLP)
      expect activation gelu_tanh of activation_fn
      expect returns tensor
    }
  }

  export flash_rt {
    weights_map = "transformers",
    weights_root = "model",
    layout = "out_in_native",
    boundary_dtype = "float32",
    versions[lerobot] = ">=0.5,<0.6",
    m_profile[vision] = "medium vision"
  }
}
