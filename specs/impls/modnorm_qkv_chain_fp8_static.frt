frt 1

impl fp8_static version 1 for modnorm_qkv_chain version 3 {
  """Static per-tensor FP8 (E4M3) projections behind a modulated norm.

  Norm and modulation run in float32; their result is scaled once for all projections. The Hub's
  kernel that norms, modulates and writes FP8 is in another package than its products, and a
  rung calls one package: here the products are the Hub's.
  """
  status draft

  pack  q    = quantize(w_q.T, fp8_e4m3, per tensor)
  pack  k    = quantize(w_k.T, fp8_e4m3, per tensor)
  pack  v    = quantize(w_v.T, fp8_e4m3, per tensor)
  scale in_s = static(attn_in)
  numerics { acc f32, out bf16 }
  admits x { bf16, fp16, f32 }
  only modulation (scale_shift)

  rung hub "flashrt/flashrt-fp8-ffn" version 1 {
    envelope { D % 16 == 0, Nq % 16 == 0, Nk % 16 == 0, Nv % 16 == 0 }
    prepare q_bias = bf16(b_q) when present b_q otherwise zeros((Nq), bf16)
    prepare k_bias = bf16(b_k) when present b_k otherwise zeros((Nk), bf16)
    prepare v_bias = bf16(b_v) when present b_v otherwise zeros((Nv), bf16)
    call {
      let codes = quantize(reshape(attn_in, (B * M, D)), fp8_e4m3, in_s)
      let q_out = fp8_linear_bias_bf16(codes, q, q_bias, in_s, q.scale)
      yield q = reshape(q_out, (B, M, Nq))
      let k_out = match fanout {
        qkv => fp8_linear_bias_bf16(codes, k, k_bias, in_s, k.scale),
        q_only => codes
      }
      let v_out = match fanout {
        qkv => fp8_linear_bias_bf16(codes, v, v_bias, in_s, v.scale),
        q_only => codes
      }
      yield k = reshape(k_out, (B, M, Nk)) when fanout is qkv
      yield v = reshape(v_out, (B, M, Nv)) when fanout is qkv
    }
  }
  rung torch {
    envelope { D % 16 == 0, Nq % 16 == 0, Nk % 16 == 0, Nv % 16 == 0 }
    lower linear to scaled_mm
  }
  rung emulate
}
