frt 1

structure qkv_rope version 1 {
  """The bias of a packed projection, its split into heads, and rotary embedding.

  For attention without norms of queries and keys; `qk_norm_rope` is the form with them.
  The bias is added in the host's dtype, the rotation runs in float32.
  """
  status draft

  dim B, T, Hq, Hkv, D

  in  packed       [B, T, (Hq + 2 * Hkv) * D] : host
  in  cos          [B, T, D / 2 | D] : f32
  in  sin          [B, T, D / 2 | D] : f32
  out q_after_rope [B, T, Hq, D] : host
  out k_after_rope [B, T, Hkv, D] : host
  out v            [B, T, Hkv, D] : host

  slot qkv_bias [(Hq + 2 * Hkv) * D]

  variant rope_layout { half } default half

  reference {
    let p = packed + qkv_bias
    let q = unflatten(split(p, (Hq * D, Hkv * D, Hkv * D))[0], (Hq, D))
    let k = unflatten(split(p, (Hq * D, Hkv * D, Hkv * D))[1], (Hkv, D))
    let qr = match rope_layout { half => rope_half(f32(q), cos, sin) }
    let kr = match rope_layout { half => rope_half(f32(k), cos, sin) }
    yield q_after_rope = cast(qr, packed)
    yield k_after_rope = cast(kr, packed)
    yield v = unflatten(split(p, (Hq * D, Hkv * D, Hkv * D))[2], (Hkv, D))
  }

  point packed observation  # how many tokens a call has
  point cos observation
  point sin observation

  require { D % 2 == 0, D <= 256, table(cos) is per_token, table(sin) is per_token }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, unfused_chain) }
  evidence """
  The vision tower of Qwen3-VL has equally many heads of all three and adds the bias of its
  packed projection. Q, K and V stand in this order.
  """
}
