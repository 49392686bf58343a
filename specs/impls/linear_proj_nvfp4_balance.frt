frt 1

impl nvfp4_balance for linear_proj version 1 {
  """NVFP4 on both sides, balanced by channel before either is quantised. The input gets the
  scales of its blocks at each call.
  """
  status draft

  param alpha = 0.5 from 0 to 1
  param clamp_low = 0.25 from 0.01 to 1
  param clamp_high = 4 from 1 to 100

  pack  weight = quantize(balance(w.T, in_b), nvfp4, per block 16)
  scale in_b   = balance(x_in, alpha, clamp_low, clamp_high)
  scale in_s   = dynamic(x_in, per block 16)
  numerics { acc f32, out bf16 }
  admits x_in { bf16, fp16, f32 }

  rung torch { lower matmul to bf16_mm }
  rung emulate
}
