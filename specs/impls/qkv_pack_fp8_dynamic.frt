frt 1

impl fp8_dynamic for qkv_pack version 1 {
  """FP8 (E4M3) without calibration: a scale for each row of the input, computed at each
  call, and one for each output channel of the joint weight.
  """
  status draft

  pack  weight = quantize(cat(each i => w[i].T), fp8_e4m3, per channel)
  scale in_s   = dynamic(x_in, per row)
  numerics { acc f32, out bf16 }
  admits x_in { bf16, fp16, f32 }

  rung torch {
    envelope { K % 16 == 0, sum(N) % 16 == 0 }
    lower matmul to scaled_mm
  }
  rung emulate
}
