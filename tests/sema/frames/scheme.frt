frt 1

structure s version 1 {
  dim M, D, F
  in  x [rows M, D] : host
  out y [rows M, D] : host
  slot w_up   [D, F]
  slot w_down [F, D]
  reference {
    point x_in = x
    point hidden = silu(x_in @ w_up)
    let o = hidden @ w_down
    yield y = o
  }
  seam tail { from hidden to o  gate cosine >= 0.99 }
}

impl fp8 for s version 1 {
  pack  up    = quantize(w_up.T, fp8_e4m3, per tensor)
  pack  down  = quantize(w_down.T, fp8_e4m3, per tensor)
  scale in_s  = static(x_in)
  scale hid_s = static(hidden)
  rung emulate
}

impl four for s version 1 {
  param alpha = 0.5 from 0 to 1
  param least = 0.25 from 0.01
  pack  up   = quantize(balance(w_up.T, in_b), fp8_e4m3, per tensor)
  pack  down = quantize(w_down.T, fp8_e4m3, per tensor)
  scale in_b = balance(x_in, alpha, least, 4)
  rung emulate
}

impl weights for s version 1 {
  pack up = quantize(w_up.T, int8, per channel)
  rung emulate
}

impl fp8 for s.tail version 1 {
  pack  down = quantize(w_down.T, fp8_e4m3, per tensor)
  scale h_s  = static(hidden)
  rung emulate
}

scheme none {
  otherwise keep "off"
}

HERE
