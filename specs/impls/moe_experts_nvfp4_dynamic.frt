frt 1

impl nvfp4_dynamic for moe_experts.experts version 1 {
  """NVFP4 on both sides of the experts' products.

  Routing stays the host's and runs as it is; what the chosen experts give is added in float32
  and rounded once.
  """
  status draft

  pack  gate_up = quantize(w_gate_up.T, nvfp4, per block 16)
  pack  down    = quantize(w_down.T, nvfp4, per block 16)
  scale in_s    = dynamic(x_in, per block 16)
  scale hid_s   = dynamic(act_after_mul, per block 16)
  numerics { acc f32, store h bf16, store o bf16, out bf16 }
  admits x_in { bf16, fp16, f32 }

  rung torch { lower contract to bf16_mm }
  rung emulate

  gate boundary on synthetic { cosine >= 0.96 }
  gate seam     on synthetic { cosine >= 0.96 }
  evidence """
  On random data the product of two tensors of NVFP4 codes has a cosine of 0.991 to the exact one:
  codes are off by a tenth of a value, root mean square, on either side. A host's own data and its
  residual stream are judged at attach, by the structure's bounds.
  """
}
