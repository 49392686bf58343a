frt 1

scheme w4a16_decode {
  """NVFP4 weights in the feed-forward blocks of a decode step; half the bytes of w8a16_decode.

  Projections stay in the model's dtype: the rows at which four-bit weights pay are too few
  there.
  """
  status draft

  at decoder_ffn.mlp version 1 { x_after_norm: none, act_after_mul: none } use w4a16_static
  at linear_proj version 1     keep "four-bit weights pay at too few rows here"

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

  otherwise keep "w4a16_decode is for the feed-forward blocks of a decode step"
}
