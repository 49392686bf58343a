frt 1

structure gated version 1 {
  """Everything that chooses: axes, optional values, what exists in one variant only."""
  dim M, D, R
  param eps = 1e-5
  param scale

  in  x     [rows M, D] : host
  in  bias? [D] : host
  out y     [rows M, D] : host
  out rest  [rows M, D] : host  when split is yes

  slot w  [D, 2 * D]
  slot g? [D]  when gain is learned

  variant act   { gelu, silu, relu } default silu
  variant gain  { fixed, learned }
  variant split { no, yes }
  combinations { all except (act is relu and split is yes) }

  reference {
    let h = rms_norm(f32(x), eps)
    let h = h * f32(g)                    when gain is learned
    let h = h * scale                     when not gain is learned
    let both = cast(h, x) @ w
    let left = match act { gelu => gelu_erf(chunk(both, 2)[0]), else => silu(chunk(both, 2)[0]) }
    let right = match act { relu => relu(chunk(both, 2)[1]), else => chunk(both, 2)[1] }
    point mixed = left * right
    let out = mixed + bias                when present bias and split is no otherwise mixed
    yield y = out
    yield rest = match act { gelu => mixed - x, else => mixed + x }  when split is yes
  }

  require { D % R == 0, D / R <= 128 }
}
