frt 1

binding flashrt_pi05_prefix {
  """The decoder_ffn of flash-rt's binding pi05_prefix."""
  status imported "lerobot below 0.6 pins torch below 2.11: its classes could not be built and run"
  evidence "Imported from flash-rt, bindings/pi05_prefix.yaml, sha256 3c8c498558456922."
  host lerobot ">=0.5,<0.6"
  dims { D = 2048, F = 16384, L = 18 }

  each i in 0..L {
    seat ffn : decoder_ffn.mlp version 1 at model.paligemma_with_expert.paligemma.model.language_model.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = gelu
      variant norm_weight_mode = offset
      variant conditioning = none
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      boundary at model.paligemma_with_expert.paligemma.model.language_model.layers.{i} {
        slot w_norm = post_attention_layernorm.weight
      }
    }
  }

  export flash_rt {
    weights_map = "transformers",
    weights_root = "model",
    boundary_dtype = "bf16",
    m_profile[prefill] = "medium vision_text_prefix"
  }
}
