frt 1

impl block_fp8_static version 1 for modnorm_qkv_chain version 3 {
  """Static per-tensor FP8 (E4M3) products of a block that modulates with one row a token.

  Norms, modulation and the sums between run in float32. What the attentions compute is handed
  in the host's dtype and stays the host's.

  The Hub has kernels for each stretch between the attentions. A rung's kernels can't call back
  into the host, so there is no rung for them here.
  """
  status draft

  pack  q     = quantize(w_q.T, fp8_e4m3, per tensor)
  pack  k     = quantize(w_k.T, fp8_e4m3, per tensor)
  pack  v     = quantize(w_v.T, fp8_e4m3, per tensor)
  pack  o     = quantize(w_o.T, fp8_e4m3, per tensor)
  pack  up    = quantize(w_up.T, fp8_e4m3, per tensor)
  pack  down  = quantize(w_down.T, fp8_e4m3, per tensor)
  scale in_s  = static(attn_in)
  scale o_s   = static(o_in)
  scale ffn_s = static(ffn_in)
  scale hid_s = static(ffn_hid)
  numerics { acc f32, store h bf16, store ffn_hid bf16, out bf16 }
  admits x { bf16 }
  only modulation (per_token_table)
  only fanout (qkv)

  rung torch {
    envelope { D % 16 == 0, F % 16 == 0, Nq % 16 == 0, Nk % 16 == 0, Nv % 16 == 0 }
    lower linear to scaled_mm
  }
  rung emulate
}
