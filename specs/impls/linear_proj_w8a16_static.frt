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
    rung hub "flashrt/weight-only-ffn" version 1 {
      envelope { K % 64 == 0 }
      only epilogue (none)
      call {
        let h = w8a16_linear_bf16(bf16(x_in), weight, flatten(weight.scale, 2))
        let h = f32(h) + f32(b) when bias is add
        yield y = bf16(h)
      }
    }
    rung torch { lower matmul to bf16_mm }
    rung emulate
  } otherwise host
}
