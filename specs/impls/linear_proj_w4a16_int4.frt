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
    rung local "frt-dense" version 1 {
      only epilogue (none)
      call match bias {
        none => w4a16_linear(bf16(x_in), weight, weight.scale),
        add => w4a16_linear(bf16(x_in), weight, weight.scale, b)
      }
    }
    rung torch { lower matmul to bf16_mm }
    rung emulate
  } otherwise host

  gate boundary on synthetic { cosine >= 0.99 }
  evidence """
  On random data a product with INT4 weights in groups of 64 has a cosine of 0.994 to the exact
  one: fifteen codes over the largest of a group are off by a ninth of a value, root mean square. A
  host's own data and its residual stream are judged at attach, by the structure's bounds.
  """
}
