frt 1

impl bf16 version 1 for qkv_rope version 2 {
  """Rotation in float32, written in bfloat16 once.

  The Hub's kernel takes queries, keys and values in one packed tensor, which is put together
  from them here, with the keys once more where the values would be, and no bias. It reads the
  tables in bfloat16.
  """
  status draft

  numerics { acc f32, out bf16 }
  admits q { bf16, fp16, f32 }

  rung hub "flashrt/flashrt-qkv-cache-rope" version 1 {
    envelope { 8 <= D <= 256, D % 2 == 0, Hq % Hkv == 0 }
    prepare no_bias = zeros(((Hq + 2 * Hkv) * D), bf16)
    call {
      let packed = cat(flatten(bf16(q), 2), flatten(bf16(k), 2), flatten(bf16(k), 2), axis = -1)
      let c = contiguous(unsqueeze(bf16(cos), 0))
      let s = contiguous(unsqueeze(bf16(sin), 0))
      let (q_turned, k_turned, _) = qkv_split_bias_rope_bf16(unsqueeze(packed, 0), no_bias, c, s, Hq, Hkv, D)
      yield q_after_rope = q_turned[0]
      yield k_after_rope = k_turned[0]
    }
  }
  rung torch { lower rope_half to addcmul_rope }
  rung emulate
}
