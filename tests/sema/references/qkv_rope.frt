frt 1

structure qkv_rope version 1 {
  dim B, T, Hq, Hkv, D

  in  packed [B, T, (Hq + 2*Hkv)*D] : host
  in  cos    [B, T, D/2 | D] : f32
  in  sin    [B, T, D/2 | D] : f32
  out q      [B, T, Hq, D] : host
  out k      [B, T, Hkv, D] : host
  out v      [B, T, Hkv, D] : host
  slot qkv_bias [(Hq + 2*Hkv)*D]

  reference {
    let p = packed + qkv_bias
    let qh = unflatten(split(p, (Hq*D, Hkv*D, Hkv*D), 0), (Hq, D))
    let kh = unflatten(split(p, (Hq*D, Hkv*D, Hkv*D), 1), (Hkv, D))
    yield q = cast(rope_half(f32(qh), cos, sin), packed)
    yield k = cast(rope_half(f32(kh), cos, sin), packed)
    yield v = unflatten(p[..., (Hq + Hkv)*D:], (Hkv, D))
  }
}
