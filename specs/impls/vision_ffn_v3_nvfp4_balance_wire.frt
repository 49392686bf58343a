frt 1

impl nvfp4_balance_wire version 1 for vision_ffn.mlp version 3 {
  """`nvfp4_balance` for a kernel that hands codes from the first product to the second.

  The first product writes the gelu in NVFP4 at once, so nothing can balance the second.
  """
  status draft

  param alpha = 0.5 from 0 to 1
  param clamp_low = 0.25 from 0.01 to 1
  param clamp_high = 4 from 1 to 100

  pack  fc1   = quantize(balance(w_fc1.T, in_b), nvfp4, per block 16)
  pack  fc2   = quantize(w_fc2.T, nvfp4, per block 16)
  scale in_b  = balance(x_after_norm, alpha, clamp_low, clamp_high)
  scale in_s  = dynamic(x_after_norm, per block 16)
  scale hid_s = dynamic(hidden_after_act, per block 16)
  numerics { acc f32, out bf16 }
  admits x_after_norm { bf16, fp16, f32 }

  rung torch { lower matmul to bf16_mm }
  rung emulate

  gate boundary on synthetic { cosine >= 0.998 }
  gate seam     on synthetic { cosine >= 0.97 }
  evidence """
  On random data the product of two tensors of NVFP4 codes has a cosine of 0.991 to the exact one:
  codes are off by a tenth of a value, root mean square, on either side. A host's own data and its
  residual stream are judged at attach, by the structure's bounds.
  """
}
