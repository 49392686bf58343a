frt 1

impl fp8_static for qkv_pack version 1 {
  """Static per-tensor FP8 (E4M3): every sibling's weight in one pack, one scale, one product."""
  status draft

  pack  weight = quantize(cat(each i => w[i].T), fp8_e4m3, per tensor)
  scale in_s   = static(x_in)
  numerics { acc f32, out bf16 }
  admits x_in { bf16, fp16, f32 }

  rung hub "flashrt/flashrt-fp8-ffn" version 1 {
    envelope { K % 16 == 0, sum(N) % 16 == 0 }
    call {
      let codes = quantize(x_in, fp8_e4m3, in_s)
      let h = match bias {
        none => fp8_gemm_bf16(codes, weight, in_s, weight.scale),
        add => fp8_linear_bias_bf16(codes, weight, bf16(b), in_s, weight.scale)
      }
      yield y = split(h, weight.rows)
    }
  }
  rung torch {
    envelope { K % 16 == 0, sum(N) % 16 == 0 }
    lower matmul to scaled_mm
  }
  rung emulate
}
