frt 1

structure gated version 1 {
  """A product whose result is gated, and the gate itself."""
  dim M, K, N
  param eps = 1e-6
  in  x     [rows M, K] : host
  in  state [rows M, N] : host
  out y     [rows M, N] : host
  out gate  [rows M, N] : host
  slot w  [K, N]
  slot b? [N]
  variant form { plain, added }
  reference {
    point x_in = x
    let a = f32(x_in) @ f32(w)
    let a = a + f32(b)      when present b
    let a = a + f32(state)  when form is added
    let s = sigmoid(a + eps)
    yield gate = cast(s, x)
    yield y = cast(a * s, x)
  }
}

impl int8 for gated version 1 {
  """INT8 weights in a package that packs them once more, and writes into the state."""
  pack w8 = quantize(w.T, int8, per channel)
  numerics { acc f32, out bf16 }
  rung hub "org/gated" version 2 {
    envelope { K % 32 == 0 }
    prepare (tiles, _) = tile(w8, contiguous(bf16(w)), order = "kn")
    prepare bias16 = bf16(b) when present b otherwise zeros((N), bf16)
    prepare largest = number(w8.scale[0, 0])
    call {
      let h = match form {
        plain => run(bf16(x_in), tiles, flatten(w8.scale, 2), bias = bias16, fast = true),
        added => run_added(updates(clone(bf16(state))), bf16(x_in), tiles, bias16, D = K, eps = eps)
      }
      let pair = unflatten(entry(h, largest, none), (2, N))
      yield gate = gate
      yield y = pair[:, 0]
    }
  }
  rung emulate
}
