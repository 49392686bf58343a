frt 1

impl w4a16_static for linear_proj version 1 {
  """NVFP4 weight; the input stays in bfloat16.

  The torch rung holds the codes only and reads them back at each call: it saves memory, not
  time.
  """
  status draft

  pack weight = quantize(w.T, nvfp4, per block 16)
  numerics { acc f32, store x_in bf16, out bf16 }
  admits x_in { bf16, fp16, f32 }

  band M in 1..=3 {
    rung torch { lower matmul to bf16_mm }
    rung emulate
  } otherwise host

  gate boundary on synthetic { cosine >= 0.99 }
  evidence """
  On random data a product with NVFP4 weights has a cosine of 0.9955 to the exact one: codes are
  off by a tenth of a value, root mean square. A host's own data and its residual stream are judged
  at attach, by the structure's bounds.
  """
}
