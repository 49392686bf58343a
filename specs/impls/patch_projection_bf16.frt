frt 1

impl bf16 for patch_projection version 1 {
  """bfloat16: the convolution as the one product that it is."""
  status draft

  pack weight = bf16(w.T)
  numerics { acc f32, store x_in bf16, out bf16 }
  admits x_in { bf16, fp16, f32 }

  rung torch { lower linear to bf16_mm }
  rung emulate
}
