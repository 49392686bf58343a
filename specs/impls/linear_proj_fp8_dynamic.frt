frt 1

impl fp8_dynamic for linear_proj version 1 {
  """FP8 (E4M3) without calibration: a scale for each row of the input, computed at each
  call, and one for each output channel of the weight.
  """
  status draft

  pack  weight = quantize(w.T, fp8_e4m3, per channel)
  scale in_s   = dynamic(x_in, per row)
  numerics { acc f32, out bf16 }
  admits x_in { bf16, fp16, f32 }

  rung torch {
    envelope { K % 16 == 0, N % 16 == 0 }
    lower matmul to scaled_mm
  }
  rung emulate
}
