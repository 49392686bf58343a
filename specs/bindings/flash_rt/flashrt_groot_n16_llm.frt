frt 1

binding flashrt_groot_n16_llm {
  """The decoder_ffn of flash-rt's binding groot_n16_llm."""
  status imported "isaac_gr00t is on no package index: nothing of it could be looked at"
  evidence "Imported from flash-rt, bindings/groot_n16_llm.yaml, sha256 c6d78ce399bb30e6."
  host isaac_gr00t "n1.6"
  dims { D = 2048, F = 6144, L = 16 }

  each i in 0..L {
    seat ffn : decoder_ffn.mlp version 1 at backbone.model.language_model.model.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = silu
      variant norm_weight_mode = direct
      variant conditioning = none
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      boundary at backbone.model.language_model.model.layers.{i} {
        slot w_norm = post_attention_layernorm.weight
      }
    }
  }

  export flash_rt {
    boundary_dtype = "bf16",
    m_profile[prefix] = "medium prefill"
  }
}
