frt 1

scheme w8a16_decode {
  """INT8 weights where a decode step is: few rows, so reading weights is what takes the time.

  Activations stay in bfloat16 and nothing is calibrated. Calls with more rows, such as
  prefill, run the model's own module and are counted.
  """
  status draft

  at decoder_ffn.mlp version 1 { x_after_norm: none, act_after_mul: none } use w8a16_static
  at linear_proj version 1     { x_in: none } use w8a16_static

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

  otherwise keep "w8a16_decode is for the products of a decode step"
}
