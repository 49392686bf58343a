frt 1

scheme nvfp4_awq {
  """NVFP4 weights, made finer where the activations that meet them are large.

  Calibration measures how large each channel gets; activations stay in bfloat16.
  """
  status draft

  at decoder_ffn.mlp version 1 {
    x_after_norm: amax per channel,
    act_after_mul: amax per channel
  } use nvfp4_awq with (alpha = 0.5, clamp_low = 0.25, clamp_high = 4)

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

  otherwise keep "nvfp4_awq is for feed-forward blocks"
}
