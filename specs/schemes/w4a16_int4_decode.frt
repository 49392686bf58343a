frt 1

scheme w4a16_int4_decode {
  """INT4 weights by groups of 128 in the products of a decode step."""
  status draft

  at decoder_ffn.mlp version 1 { x_after_norm: none, act_after_mul: none } use w4a16_int4
  at linear_proj version 1     { x_in: none } use w4a16_int4

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

  otherwise keep "w4a16_int4_decode is for the products of a decode step"
}
