frt 1

binding flashrt_qwen25_15b {
  """The decoder_ffn of flash-rt's binding qwen25_15b."""
  status draft
  evidence "Imported from flash-rt, bindings/qwen25_15b.yaml, sha256 6e99aacb8aca65a9."
  host transformers ">=5.13,<6" class Qwen2ForCausalLM
  dims { D = 1536, F = 8960, L = 28 }

  each i in 0..L {
    seat ffn : decoder_ffn.mlp version 1 at model.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = silu
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      variant conditioning = none
      param eps = config.rms_norm_eps
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      point x_after_norm  = input
      point act_after_mul = input of down_proj
      boundary at model.layers.{i} {
        x = input of post_attention_layernorm,
        y = output,
        slot w_norm = post_attention_layernorm.weight
      }
      expect class (Qwen2MLP)
      expect bias none of (gate_proj, up_proj, down_proj)
      expect activation silu of act_fn
      expect returns tensor
    }
  }

  export flash_rt {
    boundary_dtype = "bf16",
    versions[transformers] = ">=4.50,<6",
    m_profile[prefill] = "medium prefill",
    m_profile[decode] = "micro decode"
  }
}
