frt 1

binding flashrt_pi05_prefix {
  """The decoder_ffn of flash-rt's binding pi05_prefix."""
  status draft
  evidence "Imported from flash-rt, bindings/pi05_prefix.yaml, sha256 3c8c498558456922."
  host lerobot ">=0.5.1,<0.6" class PI05Policy
  dims { D = 2048, F = 16384, L = 18 }

  each i in 0..L {
    seat ffn : decoder_ffn.mlp version 1 at model.paligemma_with_expert.paligemma.model.language_model.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = gelu
      variant norm_weight_mode = offset
      variant norm_rounding = after_weight
      variant conditioning = none
      param eps = model.model.paligemma_with_expert.paligemma.config.text_config.rms_norm_eps
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      point x_after_norm  = input
      point act_after_mul = input of down_proj
      boundary at model.paligemma_with_expert.paligemma.model.language_model.layers.{i} {
        x = input of post_attention_layernorm,
        y = output,
        slot w_norm = post_attention_layernorm.weight
      }
      expect class (GemmaMLP)
      expect bias none of (gate_proj, up_proj, down_proj)
      expect activation gelu_tanh of act_fn
      expect returns tensor
    }
  }

  export flash_rt {
    weights_map = "transformers",
    weights_root = "model",
    boundary_dtype = "bf16",
    versions[lerobot] = ">=0.5,<0.6",
    m_profile[prefill] = "medium vision_text_prefix"
  }
}
