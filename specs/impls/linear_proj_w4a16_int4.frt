frt 1

impl w4a16_int4 for linear_proj version 1 {
  """INT4 weight in groups of 64; the input stays in bfloat16.

  The torch rung holds the codes only and reads them back at each call: it saves memory, not
  time.
  """
  status draft

  pack weight = quantize(w.T, int4, per group 64)
  numerics { acc f32, store x_in bf16, out bf16 }
  admits x_in { bf16, fp16, f32 }

  band M in 1..=8 {
    rung torch { lower matmul to bf16_mm }
    rung emulate
  } otherwise host
}
