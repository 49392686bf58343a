frt 1

scheme fp8_static {
  """Static per-tensor FP8 on every matrix product that has a form for it."""
  status draft

  at decoder_ffn.mlp version 1 {
    x_after_norm: amax per tensor,
    act_after_mul: amax per tensor
  } use fp8_static
  at linear_proj version 1 { x_in: amax per tensor } use fp8_static
  at qkv_pack version 1    { x_in: amax per tensor } use fp8_static
  at norm_fused version 1  { x_in: none } use bf16
  otherwise keep "no fp8_static form for this structure"
}
