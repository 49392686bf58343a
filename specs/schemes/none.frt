frt 1

scheme none {
  """Quantisation off. Structures that fuse without quantising still bind."""
  status draft

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

  otherwise keep "quantisation is off (scheme none)"
}
