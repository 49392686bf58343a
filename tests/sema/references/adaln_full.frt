frt 1

structure modulated_norm version 1 {
  dim B, M, D, C, Nq, Nk
  param eps = 1e-5

  in  x    [B, M, D] : host
  in  cond [B, C] : host
  out q    [B, M, Nq] : host
  out k    [B, M, Nk] : host  when fanout is qk
  slot w_cond [2*D, C]
  slot b_cond [2*D]
  slot w_q [Nq, D]
  slot w_k [Nk, D]  when fanout is qk
  variant fanout { qk, q_only }

  reference {
    let style = linear(silu(cond), w_cond, b_cond)
    let scale = unsqueeze(chunk(style, 2, 0), 1)
    let shift = unsqueeze(chunk(style, 2, 1), 1)
    let n = cast(layer_norm(f32(x), eps), x)
    point attn_in = n * (1 + scale) + shift
    yield q = linear(attn_in, w_q)
    yield k = linear(attn_in, w_k)  when fanout is qk
  }
}
