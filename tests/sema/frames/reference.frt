frt 1

structure s version 1 {
  dim B, M, D, F, H, Dk, Dv, S, R
  param eps = 1e-6
  in  x     [rows M, D] : host
  in  bias? [D] : host
  in  q     [B, S, H, Dk] : f32
  in  v     [B, S, H, Dv] : f32
  in  state [B, H, Dk, Dv] : f32
  in  cos   [B, S, R/2] : f32
  in  wide  [rows M, H*Dk] : host
  in  flags [rows M, D] : bool
  in  half  [rows M, D] : bf16
  out y [rows M, D] : host
  slot w     [D, F]
  slot w_out [F, D]
  slot code  [F, D] : int8
  variant sign { plain, negated }
  reference {
HERE
    point p1 = rms_norm(wide, eps)
    point p2 = half + where(flags, half, 0)
    point p3 = contract(q, state, over Dk) + v
    point p4 = rope_half(q, cos, cos, R) + Dk
    point p5 = f32(code)
    point p6 = match sign { plain => x, negated => -x }
    let out = x
    let out = out + bias  when present bias
    yield y = (out @ w) @ w_out
  }
}
