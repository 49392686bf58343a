frt 1

impl fp8_static version 1 for modnorm_qkv_chain version 3 {
  """Static per-tensor FP8 (E4M3) projections behind a modulated norm.

  Norm and modulation run in float32; their result is scaled once for all projections.
  """
  status draft

  pack  q    = quantize(w_q.T, fp8_e4m3, per tensor)
  pack  k    = quantize(w_k.T, fp8_e4m3, per tensor)
  pack  v    = quantize(w_v.T, fp8_e4m3, per tensor)
  scale in_s = static(attn_in)
  numerics { acc f32, out bf16 }
  admits x { bf16, fp16, f32 }
  only modulation (scale_shift)

  rung torch {
    envelope { D % 16 == 0, Nq % 16 == 0, Nk % 16 == 0, Nv % 16 == 0 }
    lower linear to scaled_mm
  }
  rung emulate
}
