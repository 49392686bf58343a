frt 1

structure proj version 1 {
  """A product with an optional bias."""
  dim M, K, N
  in  x [rows M, K] : host
  out y [rows M, N] : host
  slot w  [K, N]
  slot b? [N]  when bias is add
  variant bias { none, add }
  reference {
    point x_in = x
    let a = f32(x_in) @ f32(w)
    let a = a + f32(b)  when bias is add
    yield y = cast(a, x)
  }
  seam product { from x_in to a }
}

impl int8_weights for proj version 1 {
  """Weights in INT8, one scale an output channel; activations as they are."""
  pack w8 = quantize(w.T, int8, per channel)
  numerics { acc f32, store a fp16, out fp16 }
  admits x_in { fp16, f32 }
  rung hub "org/int8-proj" version 3 {
    envelope { K % 32 == 0 }
    call match bias { none => run (x_in, w = w8, s = w8.scale, m = M),
                      add  => run_bias (fp16(x_in), w8, w8.scale, fp16(b), 1) }
  }
  rung emulate
}

impl fp8_rows for proj version 1 {
  """FP8 for few rows, in a kernel of our own."""
  pack weight = quantize(w.T, fp8_e4m3, per channel)
  scale in_s  = static(x_in)
  numerics { acc f32, out bf16 }
  admits x_in { bf16 }
  only bias (none)
  band M in 1..=8 {
    rung local "frt-gemv" version 1 {
      envelope { K % 16 == 0 }
      call gemv (quantize(x_in, fp8_e4m3, in_s), weight, in_s, weight.scale)
    }
    rung emulate
  } otherwise host
}
