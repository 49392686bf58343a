frt 1

impl w8a16_static for linear_proj version 1 {
  """INT8 weight, one scale an output channel; the input stays in bfloat16.

  The torch rung holds the codes only and reads them back at each call: it saves memory, not
  time.
  """
  status draft

  pack weight = quantize(w.T, int8, per channel)
  numerics { acc f32, store x_in bf16, out bf16 }
  admits x_in { bf16, fp16, f32 }

  band M in 1..=4 {
    rung local "frt-dense" version 1 {
      only epilogue (none)
      call match bias {
        none => w8a16_linear(bf16(x_in), weight, weight.scale),
        add => w8a16_linear(bf16(x_in), weight, weight.scale, b)
      }
    }
    rung torch { lower matmul to bf16_mm }
    rung emulate
  } otherwise host
}
