frt 1

scheme nvfp4_dynamic {
  """NVFP4 on both sides; the scales of activations are those of each call."""
  status draft

  at linear_proj version 1         { x_in: none } use nvfp4_dynamic
  at moe_experts.experts version 1 { x_in: none, act_after_mul: none } use nvfp4_dynamic

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

  otherwise keep "no nvfp4_dynamic form for this structure"
}
