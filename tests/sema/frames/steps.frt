frt 1

structure s version 1 {
  dim M, D, F
  in  x [rows M, D] : host
  out y [rows M, F] : host
  slot w_up [D, F]
  slot b?   [F]
  reference {
    point x_in = x
    let o = x_in @ w_up
    let o = o + b  when present b
    yield y = o
  }
}

impl form for s version 1 {
  pack down = quantize(w_up.T, fp8_e4m3, per tensor)
  numerics { acc f32, out bf16 }
HERE
}
