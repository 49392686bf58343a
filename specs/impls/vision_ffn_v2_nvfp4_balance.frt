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
  numerics { acc f32, store a bf16, out bf16 }
  admits x_after_norm { bf16, fp16, f32 }

  rung torch { lower matmul to bf16_mm }
  rung emulate

  gate boundary on synthetic { cosine >= 0.998 }
  evidence """
  On random data the product of two tensors of NVFP4 codes has a cosine of 0.991 to the exact one:
  codes are off by a tenth of a value, root mean square, on either side. A host's own data and its
  residual stream are judged at attach, by the structure's bounds.
  """
}
