frt 1

scheme bf16_structural {
  """Nothing is quantised; forms that only join what shares an input still bind."""
  status draft

  at decoder_ffn.mlp version 1 keep "bf16_structural quantises nothing"
  at linear_proj version 1     keep "bf16_structural quantises nothing"
  at vision_ffn.mlp version 2  keep "bf16_structural quantises nothing"
  at vision_ffn.mlp version 3  keep "bf16_structural quantises nothing"
  at qkv_pack version 1        use bf16

  # Fused, not quantised.
  at adaln_producer version 1   use bf16
  at adaln_producer version 2   use bf16
  at attention_core version 1   use bf16
  at attention_core version 2   use bf16
  at gated_delta_core version 1 use bf16
  at gated_delta_core version 2 use bf16
  at norm_fused version 1       use bf16
  at norm_fused version 2       use bf16
  at patch_projection version 1 use bf16
  at qk_norm_rope version 1     use bf16
  at qkv_rope version 1         use bf16
  at qkv_rope version 2         use bf16

  # No quantisation is missing here: nothing executes these yet.
  at decoder_block version 1 keep "no kernel runs a block as one: its norms and FFN are seats of their own"

  otherwise keep "no form in the model's dtype for this structure"
}
