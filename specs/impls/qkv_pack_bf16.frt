frt 1

impl bf16 for qkv_pack version 1 {
  """bfloat16: every sibling's weight in one pack, one product; nothing is quantised."""
  status draft

  pack weight = bf16(cat(each i => w[i].T))
  numerics { acc f32, store x_in bf16, out bf16 }
  admits x_in { bf16, fp16, f32 }

  rung hub "flashrt/flashrt-gemm-epilogues" version 1 {
    envelope { K % 8 == 0, sum(N) % 8 == 0 }
    prepare weight_kn = contiguous(weight.T)
    call {
      let x16 = contiguous(bf16(x_in))
      let h = match bias {
        none => bf16_linear_bf16(x16, weight_kn),
        add => bf16_linear_bias_bf16(x16, weight_kn, bf16(b))
      }
      yield y = split(h, weight.rows)
    }
  }
  rung torch { lower matmul to bf16_mm }
  rung emulate
}
