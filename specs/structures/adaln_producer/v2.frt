frt 1

structure adaln_producer version 2 {
  """An adaptive norm whose projection may be of low rank and may get a term from elsewhere.

  Version 1 with what Cosmos does: the conditioning goes through two small projections, and what
  one projection for all blocks has made of it is added before it is split.
  """
  status draft

  dim M, D, C, R
  param eps = 1e-6

  in  x           [rows M, D] : host
  in  cond        [1, C] : host
  in  style_term? [1, 3 * D] : host
  out y           [rows M, D] : host
  out gate        [1, D] : host

  slot style_w    [C, 3 * D]  when projection is full
  slot style_down [C, R]      when projection is low_rank
  slot style_up   [R, 3 * D]  when projection is low_rank
  slot style_b?   [3 * D]
  slot norm_w?    [D]

  variant projection      { full, low_rank }
  variant norm            { rms, layer }
  variant style_order     { scale_first, shift_first }
  variant cond_activation { none, silu }

  reference {
    point cond_in = cond
    let c = match cond_activation { none => cond_in, silu => silu(cond_in) }
    let s = match projection {
      full => f32(c) @ f32(style_w),
      low_rank => f32(c @ style_down) @ f32(style_up)
    }
    let s = s + f32(style_b)     when present style_b
    let s = s + f32(style_term)  when present style_term
    let first = chunk(s, 3)[0]
    let second = chunk(s, 3)[1]
    let scale = match style_order { scale_first => first, shift_first => second }
    let shift = match style_order { scale_first => second, shift_first => first }
    point x_in = x
    let n = match norm { rms => rms_norm(f32(x_in), eps), layer => layer_norm(f32(x_in), eps) }
    let n = n * f32(norm_w)      when present norm_w
    yield y = cast(n * (1 + scale) + shift, x)
    yield gate = cast(chunk(s, 3)[2], x)
  }

  discover {
    role first  : linear (style_down)
    role second : linear (style_up)
    role inner  : layer_norm gives eps
    called cond (embedded_timestep, cond, emb)
    called term (temb)
    variant projection = low_rank
    variant norm = layer
    point cond_in = arg cond
    point x_in    = input
    boundary at seat {
      x = input,
      cond = arg cond,
      style_term = arg term,
      y = output[0],
      gate = output[1] : one_token
    }
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, vendor) }
}
