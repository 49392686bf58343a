frt 1

scheme fp8_static_keep_outliers {
  """Static per-tensor FP8, except where a point is an outlier.

  One scale has to hold the whole range of a tensor. Where a point's range is 20 times what is
  usual on this host, most of its values would share a few codes, so that seat keeps the
  model's dtype.
  """
  status draft

  at decoder_ffn.mlp version 1 {
    x_after_norm: amax per tensor,
    act_after_mul: amax per tensor
  } keep when amax > 20 * median(amax) use fp8_static
  at linear_proj version 1 { x_in: amax per tensor } keep when amax > 20 * median(amax) use fp8_static
  at modnorm_qkv_chain version 3 {
    attn_in: amax per tensor
  } keep when amax > 20 * median(amax) use fp8_static
  at modnorm_qkv_chain version 3 {
    attn_in: amax per tensor,
    o_in: amax per tensor,
    ffn_in: amax per tensor,
    ffn_hid: amax per tensor
  } keep when amax > 20 * median(amax) use block_fp8_static
  at qkv_pack version 1 { x_in: amax per tensor } keep when amax > 20 * median(amax) use fp8_static
  at vision_ffn.mlp version 2 {
    x_after_norm: amax per tensor,
    hidden_after_act: amax per tensor
  } keep when amax > 20 * median(amax) use fp8_static
  at vision_ffn.mlp version 3 {
    x_after_norm: amax per tensor,
    hidden_after_act: amax per tensor
  } keep when amax > 20 * median(amax) use fp8_static

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

  otherwise keep "no fp8_static form for this structure"
}
