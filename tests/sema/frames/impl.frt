frt 1

structure s version 1 {
  dim M, D, F
  index i in 2..=3
  dim N[i]
  in  x    [rows M, D] : host
  out y    [rows M, D] : host
  out z[i] [rows M, N[i]] : host
  slot w_up   [D, F]
  slot w_gate [D, F]
  slot w_down [F, D]
  slot v[i]   [D, N[i]]
  slot b?     [D]
  variant act { gelu, silu }
  reference {
    point x_in = x
    let g = x_in @ w_gate
    let u = x_in @ w_up
    point hidden = match act { gelu => gelu_tanh(g), silu => silu(g) } * u
    let o = hidden @ w_down
    let o = o + b  when present b
    yield y = o
    each i { yield z[i] = x_in @ v[i] }
  }
}

impl form for s version 1 {
HERE
}
