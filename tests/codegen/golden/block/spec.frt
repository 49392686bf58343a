frt 1

structure block version 1 {
  """A block of two smaller structures around what stays the host's, with a state."""

  dim B, S, D
  in  x     [B, S, D] : host
  in  state [B, D] : f32
  in  v     [B, S, D] : host
  out y     [B, S, D] : host
  out after [B, D] : f32 updates state
  out v_out [B, S, D] : host aliases v

  slot norm : structure scaled version 1 with (style is gate)
  slot mlp : structure hidden.tail version 1

  part attention : host fn (h) -> h

  point state content

  reference {
    let r = x + attention(norm(x).y) * norm(x).gate
    yield y = r + cast(mlp(bf16(r)), x)
    yield after = state * 0.5
    yield v_out = v
  }

  require { kept(state) is explicit, D in (16, 32, 64) }
  require for static_buffer { drift(state) <= 1e-3 }
}

structure scaled version 1 {
  """A scaled value, and a gate in one style."""
  dim M, D
  in  x    [rows M, D] : host
  out y    [rows M, D] : host
  out gate [rows M, D] : host  when style is gate
  slot w [D]
  variant style { gate, plain }
  reference {
    yield y = x * w
    yield gate = x + w  when style is gate
  }
  qualify when style is plain { D >= 16 }
}

structure hidden version 1 {
  """Codes in, and a product behind them."""
  dim M, D, F
  in  x [rows M, D] : fp8_e4m3 scale x_s
  out y [rows M, D] : fp8_e4m3 scale y_s
  slot up   [D, F] : f32
  slot down [F, D] : f32
  variant activation { relu, silu }
  reference {
    let h = f32(x) * x_s
    let g = bf16(h)
    let u = match activation { relu => relu(f32(g) @ up), silu => silu(f32(g) @ up) }
    point act = u
    let o = act @ down
    yield y = quantize(o, fp8_e4m3, y_s)
  }
  seam tail { from g to o  gate cosine >= 0.99 }
}
