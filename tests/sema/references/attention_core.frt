frt 1

structure attention_core version 1 {
  dim B, H, Hkv, Sq, Skv, D

  in  q     [B, H, Sq, D] : host
  in  k     [B, Hkv, Skv, D] : host
  in  v     [B, Hkv, Skv, D] : host
  in  mask? [B, 1, Sq, Skv] : host
  out y     [B, Sq, H, D] : host

  variant masking { given, causal }

  require { H % Hkv == 0 }

  reference {
    let kk = f32(repeat(k, H / Hkv, over Hkv))
    let vv = f32(repeat(v, H / Hkv, over Hkv))
    let s = contract(f32(q), kk, over D) * D ** -0.5
    let s = causal_mask(s)  when masking is causal
    let s = s + f32(mask)   when present mask
    point weights = softmax(s, over Skv)
    let o = contract(weights, vv, over Skv)
    yield y = cast(transpose(o, over H, over Sq), q)
  }
}
