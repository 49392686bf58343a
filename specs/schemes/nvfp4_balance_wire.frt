frt 1

scheme nvfp4_balance_wire {
  """nvfp4_balance, where vision blocks hand codes from their first product to the second.

  The second product is then not balanced, which is another arithmetic and so another scheme.
  """
  status draft

  at decoder_ffn.mlp version 1 {
    x_after_norm: amax per channel,
    act_after_mul: amax per channel
  } use nvfp4_balance with (alpha = 0.5, clamp_low = 0.25, clamp_high = 4)
  at linear_proj version 1 {
    x_in: amax per channel
  } use nvfp4_balance with (alpha = 0.5, clamp_low = 0.25, clamp_high = 4)
  at qkv_pack version 1 {
    x_in: amax per channel
  } use nvfp4_balance with (alpha = 0.5, clamp_low = 0.25, clamp_high = 4)
  at vision_ffn.mlp version 2 {
    x_after_norm: amax per channel,
    hidden_after_act: none
  } use nvfp4_balance_wire with (alpha = 0.5, clamp_low = 0.25, clamp_high = 4)
  at vision_ffn.mlp version 3 {
    x_after_norm: amax per channel,
    hidden_after_act: none
  } use nvfp4_balance_wire with (alpha = 0.5, clamp_low = 0.25, clamp_high = 4)

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

  otherwise keep "no nvfp4_balance form for this structure"
}
