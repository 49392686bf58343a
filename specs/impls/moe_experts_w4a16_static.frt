frt 1

impl w4a16_static for moe_experts.experts version 1 {
  """NVFP4 weights of the experts; activations stay in bfloat16.

  Routing stays the host's and runs as it is; what the chosen experts give is added in float32
  and rounded once.
  """
  status draft

  pack gate_up = quantize(w_gate_up.T, nvfp4, per block 16)
  pack down    = quantize(w_down.T, nvfp4, per block 16)
  numerics { acc f32, store x_in bf16, store act_after_mul bf16, store h bf16, store o bf16, out bf16 }
  admits x_in { bf16, fp16, f32 }

  rung torch { lower contract to bf16_mm }
  rung emulate

  gate boundary on synthetic { cosine >= 0.98 }
  gate seam     on synthetic { cosine >= 0.98 }
  evidence """
  On random data a product with NVFP4 weights has a cosine of 0.9955 to the exact one: codes are
  off by a tenth of a value, root mean square. A host's own data and its residual stream are judged
  at attach, by the structure's bounds.
  """
}
