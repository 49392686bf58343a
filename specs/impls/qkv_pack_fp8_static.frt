frt 1

impl fp8_static for qkv_pack version 1 {
  """Static per-tensor FP8 (E4M3): every sibling's weight in one pack, one scale, one product."""
  status draft

  pack  weight = quantize(cat(each i => w[i].T), fp8_e4m3, per tensor)
  scale in_s   = static(x_in)
  numerics { acc f32, out bf16 }
  admits x_in { bf16, fp16, f32 }

  rung torch {
    envelope { K % 16 == 0, sum(N) % 16 == 0 }
    lower matmul to scaled_mm
  }
  rung emulate
}
