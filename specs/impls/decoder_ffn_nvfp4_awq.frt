frt 1

impl nvfp4_awq for decoder_ffn.mlp version 1 {
  """NVFP4 weights, balanced by the activations that meet them; activations in bfloat16.

  A channel that is large in the activation is made larger in the weight, where its codes are
  then finer, and as much smaller in the activation.
  """
  status draft

  param alpha = 0.5 from 0 to 1
  param clamp_low = 0.25 from 0.01 to 1
  param clamp_high = 4 from 1 to 100

  pack  gate_up = quantize(balance(cat(w_gate.T, w_up.T), in_b), nvfp4, per block 16)
  pack  down    = quantize(balance(w_down.T, hid_b), nvfp4, per block 16)
  scale in_b    = balance(x_after_norm, alpha, clamp_low, clamp_high)
  scale hid_b   = balance(act_after_mul, alpha, clamp_low, clamp_high)
  numerics {
    acc f32,
    store x_after_norm bf16,
    store g bf16,
    store u bf16,
    store act_after_mul bf16,
    out bf16
  }
  admits x_after_norm { bf16, fp16, f32 }

  rung torch { lower matmul to bf16_mm }
  rung emulate

  gate boundary on synthetic { cosine >= 0.996 }
  gate seam     on synthetic { cosine >= 0.98 }
  evidence """
  On random data a product with NVFP4 weights has a cosine of 0.9955 to the exact one: codes are
  off by a tenth of a value, root mean square. A host's own data and its residual stream are judged
  at attach, by the structure's bounds.
  """
}
