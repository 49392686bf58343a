frt 1

scheme fp8_dynamic {
  """FP8 with scales that each call computes for its own rows: nothing is calibrated, so nothing
  saturates.
  """
  status draft

  at decoder_ffn.mlp version 1 { x_after_norm: none, act_after_mul: none } use fp8_dynamic
  at linear_proj version 1     { x_in: none } use fp8_dynamic
  at qkv_pack version 1        { x_in: none } use fp8_dynamic

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

  otherwise keep "no fp8_dynamic form for this structure"
}
