frt 1

impl nvfp4_balance for qkv_pack version 1 {
  """NVFP4 on both sides, balanced by channel before either is quantised. The input gets the
  scales of its blocks at each call.
  """
  status draft

  param alpha = 0.5 from 0 to 1
  param clamp_low = 0.25 from 0.01 to 1
  param clamp_high = 4 from 1 to 100

  pack  weight = quantize(balance(cat(each i => w[i].T), in_b), nvfp4, per block 16)
  scale in_b   = balance(x_in, alpha, clamp_low, clamp_high)
  scale in_s   = dynamic(x_in, per block 16)
  numerics { acc f32, store x_in bf16, out bf16 }
  admits x_in { bf16, fp16, f32 }

  rung hub "flashrt/fp4-gemm" version 1 {
    envelope { K % 32 == 0, sum(N) % 32 == 0 }
    prepare weight_sf = swizzled(weight.scale)
    prepare alpha_w = number(weight.tensor_scale)
    call {
      let (codes, sf) = quantize_fp4_sfa_bf16(bf16(f32(x_in) * in_b))
      let h = fp4_w4a16_linear_bf16(codes, weight, sf, weight_sf, alpha = alpha_w)
      let h = bf16(f32(h) + f32(b)) when bias is add
      yield y = split(h, weight.rows)
    }
  }
  rung torch { lower matmul to bf16_mm }
  rung emulate

  gate boundary on synthetic { cosine >= 0.985 }
  evidence """
  On random data the product of two tensors of NVFP4 codes has a cosine of 0.991 to the exact one:
  codes are off by a tenth of a value, root mean square, on either side. A host's own data and its
  residual stream are judged at attach, by the structure's bounds.
  """
}
