frt 1

impl bf16 for qk_norm_rope version 1 {
  """Norm and rotation in float32, written in bfloat16 once.

  The Hub's kernel takes queries, keys and values in one packed tensor, which is put together
  from them here; the values' place is taken by the keys once more, for values pass through.
  """
  status draft

  numerics { acc f32, out bf16 }
  admits q { bf16, fp16, f32 }

  rung hub "flashrt/flashrt-qkv-cache-rope" version 1 {
    only normalization_scope (per_head)
    only rope_layout (half)
    envelope { D == 128, R == 128, Hq % Hkv == 0 }
    prepare q_weight = bf16(
      match norm_weight_mode {
        direct => f32(q_norm_weight),
        offset => 1 + f32(q_norm_weight)
      }
    )
    prepare k_weight = bf16(
      match norm_weight_mode {
        direct => f32(k_norm_weight),
        offset => 1 + f32(k_norm_weight)
      }
    )
    call {
      let packed = cat(flatten(bf16(q), 2), flatten(bf16(k), 2), flatten(bf16(k), 2), axis = -1)
      let both_cos = bf16(cat(cos, cos, axis = -1))
      let both_sin = bf16(cat(sin, sin, axis = -1))
      let (q_turned, k_turned, _) = qkv_split_per_head_norm_rope_bf16(
        packed,
        q_weight,
        k_weight,
        both_cos,
        both_sin,
        Hq,
        Hkv,
        eps = eps
      )
      yield q_after_rope = q_turned
      yield k_after_rope = k_turned
      yield v_out = v when present v
    }
  }
  rung hub "flashrt/flashrt-qkv-cache-rope" version 1 {
    only normalization_scope (projection)
    only rope_layout (interleaved)
    envelope { Hq == Hkv, R == D, D % 2 == 0 }
    prepare no_bias = zeros(((Hq + 2 * Hkv) * D), bf16)
    prepare q_weight = bf16(
      match norm_weight_mode {
        direct => f32(q_norm_wide),
        offset => 1 + f32(q_norm_wide)
      }
    )
    prepare k_weight = bf16(
      match norm_weight_mode {
        direct => f32(k_norm_wide),
        offset => 1 + f32(k_norm_wide)
      }
    )
    call {
      let merged = cat(flatten(bf16(q), 2), flatten(bf16(k), 2), flatten(bf16(k), 2), axis = -1)
      let packed = reshape(merged, (1, B * T, (Hq + 2 * Hkv) * D))
      let re = contiguous(reshape(f32(cos), (B * T, R / 2)))
      let im = contiguous(reshape(f32(sin), (B * T, R / 2)))
      let (q_turned, k_turned, _) = qkv_split_bias_norm_rope_v_bf16(
        packed,
        no_bias,
        q_weight,
        k_weight,
        re,
        im,
        Hq,
        D,
        eps = eps
      )
      yield q_after_rope = reshape(q_turned, (B, T, Hq, D))
      yield k_after_rope = reshape(k_turned, (B, T, Hkv, D))
      yield v_out = v when present v
    }
  }
  rung torch {
    lower rms_norm to native_rms_norm
    lower rope_half to addcmul_rope
    lower rope_interleaved to addcmul_rope
  }
  rung emulate
}
