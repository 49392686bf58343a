frt 1

binding flashrt_smolvla_vision {
  """The vision_ffn of flash-rt's binding smolvla_vision."""
  status draft
  evidence "Imported from flash-rt, bindings/smolvla_vision.yaml, sha256 175792d81f0966f2."
  host lerobot ">=0.5.1,<0.6" class SmolVLAPolicy
  dims { D = 768, F = 3072, L = 12 }

  each i in 0..L {
    seat ffn : vision_ffn.mlp version 2 at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = gelu
      variant norm_affine = learned
      param eps = model.model.vlm_with_expert.config.vision_config.layer_norm_eps
      slot w_fc1 = fc1.weight : out_in
      slot b_fc1 = fc1.bias
      slot w_fc2 = fc2.weight : out_in
      slot b_fc2 = fc2.bias
      point x_after_norm     = input
      point hidden_after_act = input of fc2
      boundary at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i} {
        x = input of layer_norm2,
        y = output,
        slot w_norm = layer_norm2.weight,
        slot b_norm = layer_norm2.bias
      }
      expect class (SmolVLMVisionMLP)
      expect activation gelu_tanh of activation_fn
      expect returns tensor
    }
  }

  export flash_rt {
    boundary_dtype = "f32",
    versions[lerobot] = ">=0.5,<0.6",
    m_profile[encode] = "medium vision_encode"
  }
}
