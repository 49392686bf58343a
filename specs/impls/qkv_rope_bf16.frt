frt 1

impl bf16 for qkv_rope version 1 {
  """Bias, split and rotation in float32, written in bfloat16 once.

  The Hub's kernel reads the tables in bfloat16.
  """
  status draft

  numerics { acc f32, out bf16 }
  admits packed { bf16, fp16, f32 }

  rung hub "flashrt/flashrt-qkv-cache-rope" version 1 {
    envelope { 8 <= D <= 256, D % 2 == 0, Hq % Hkv == 0 }
    prepare bias = bf16(qkv_bias)
    call {
      let c = contiguous(bf16(cos))
      let s = contiguous(bf16(sin))
      yield (q_after_rope, k_after_rope, v) = qkv_split_bias_rope_bf16(
        contiguous(bf16(packed)),
        bias,
        c,
        s,
        Hq,
        Hkv,
        D
      )
    }
  }
  rung torch { lower rope_half to addcmul_rope }
  rung emulate
}
