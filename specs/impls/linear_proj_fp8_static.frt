frt 1

impl fp8_static for linear_proj version 1 {
  """Static per-tensor FP8 (E4M3) projection, with or without bias."""
  status draft

  pack  weight = quantize(w.T, fp8_e4m3, per tensor)
  scale in_s   = static(x_in)
  numerics { acc f32, out bf16 }
  admits x_in { bf16, fp16, f32 }

  rung local "frt-dense" version 1 {
    envelope { K % 16 == 0, N % 16 == 0 }
    only epilogue (none)
    call match bias {
      none => fp8_linear(bf16(x_in), weight, in_s, weight.scale),
      add => fp8_linear(bf16(x_in), weight, in_s, weight.scale, bf16(b))
    }
  }
  rung hub "flashrt/flashrt-fp8-ffn" version 1 {
    envelope { 512 <= K <= 16384, 128 <= N <= 16384, K % 16 == 0, N % 16 == 0 }
    only epilogue (none)
    call match bias {
      none => fp8_gemm_bf16(quantize(x_in, fp8_e4m3, in_s), weight, in_s, weight.scale),
      add => bf16_fp8_linear_bias_bf16(bf16(x_in), weight, bf16(b), in_s, weight.scale)
    }
  }
  rung hub "flashrt/fp8-gemm" version 1 {
    envelope { K % 16 == 0, N % 16 == 0 }
    only bias (add)
    only epilogue (gelu, residual_add)
    prepare alpha = number(in_s * weight.scale)
    prepare b16 = bf16(b)
    call {
      let codes = quantize(x_in, fp8_e4m3, in_s)
      yield y = fp8_linear_bias_gelu_bf16(codes, weight, b16, alpha) when epilogue is gelu
      yield y = fp8_linear_bias_residual_bf16(
        codes,
        weight,
        b16,
        updates(clone(bf16(residual))),
        alpha
      ) when epilogue is residual_add
    }
  }
  rung torch {
    envelope { K % 16 == 0, N % 16 == 0 }
    lower matmul to scaled_mm
  }
  rung emulate
}
