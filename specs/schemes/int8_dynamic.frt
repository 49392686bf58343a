frt 1

scheme int8_dynamic {
  """INT8 on both sides of single projections, scaled by each call for its own rows."""
  status draft

  at linear_proj version 1 { x_in: none } use int8_dynamic

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

  otherwise keep "no int8_dynamic form for this structure"
}
