frt 1

impl int8_dynamic for linear_proj version 1 {
  """INT8 on both sides: a scale for each row of the input, computed at each call, and one
  for each output channel of the weight. The product of codes is exact.
  """
  status draft

  pack  weight = quantize(w.T, int8, per channel)
  scale in_s   = dynamic(x_in, per row)
  numerics { acc f32, out bf16 }
  admits x_in { bf16, fp16, f32 }

  rung torch {
    envelope { K % 8 == 0, N % 8 == 0 }
    lower matmul to int8_mm
  }
  rung emulate
}
