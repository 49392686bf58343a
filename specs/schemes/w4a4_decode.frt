frt 1

scheme w4a4_decode {
  """A decode step of a host whose experts or linear attention hold most of its weights.

  Experts run in NVFP4 on both sides. What feeds scores and logits takes INT8 weights: there
  the denser grid is the right caution.
  """
  status draft

  at moe_experts.experts version 1 { x_in: none, act_after_mul: none } use nvfp4_dynamic
  at linear_proj version 1         { x_in: none } use w8a16_static

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

  otherwise keep "w4a4_decode is for experts and projections of a decode step"
}
