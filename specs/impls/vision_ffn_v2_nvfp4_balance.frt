frt 1

impl nvfp4_balance version 1 for vision_ffn.mlp version 2 {
  """NVFP4 on both sides of both products, balanced by channel before either is quantised.

  Activations get the scales of their blocks at each call.
  """
  status draft

  param alpha = 0.5 from 0 to 1
  param clamp_low = 0.25 from 0.01 to 1
  param clamp_high = 4 from 1 to 100

  pack  fc1   = quantize(balance(w_fc1.T, in_b), nvfp4, per block 16)
  pack  fc2   = quantize(balance(w_fc2.T, hid_b), nvfp4, per block 16)
  scale in_b  = balance(x_after_norm, alpha, clamp_low, clamp_high)
  scale hid_b = balance(hidden_after_act, alpha, clamp_low, clamp_high)
  scale in_s  = dynamic(x_after_norm, per block 16)
  scale hid_s = dynamic(hidden_after_act, per block 16)
  numerics { acc f32, store x_after_norm bf16, store a bf16, store hidden_after_act bf16, out bf16 }
  admits x_after_norm { bf16, fp16, f32 }

  rung hub "flashrt/fp4-gemm" version 1 {
    envelope { D % 32 == 0, F % 32 == 0 }
    prepare fc1_sf = swizzled(fc1.scale)
    prepare fc2_sf = swizzled(fc2.scale)
    prepare fc1_alpha = number(fc1.tensor_scale)
    prepare fc2_alpha = number(fc2.tensor_scale)
    prepare up_b16 = bf16(b_fc1)
    call {
      let (codes, sf) = quantize_fp4_sfa_bf16(bf16(f32(x_after_norm) * in_b))
      let h = nvfp4_gemm_bias_gelu_bf16(codes, fc1, sf, fc1_sf, up_b16, alpha = fc1_alpha)
      let (hid, hid_sf) = quantize_fp4_sfa_bf16(bf16(f32(h) * hid_b))
      let r = fp4_w4a16_linear_bf16(hid, fc2, hid_sf, fc2_sf, alpha = fc2_alpha)
      let r = f32(r) + f32(b_fc2)
      yield o = bf16(r)
    }
  }
  rung torch { lower matmul to bf16_mm }
  rung emulate

  gate boundary on synthetic { cosine >= 0.998 }
  evidence """
  On random data the product of two tensors of NVFP4 codes has a cosine of 0.991 to the exact one:
  codes are off by a tenth of a value, root mean square, on either side. A host's own data and its
  residual stream are judged at attach, by the structure's bounds.
  """
}
