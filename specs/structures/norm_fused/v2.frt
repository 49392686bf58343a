frt 1

structure norm_fused version 2 {
  """A norm over the last axis, computed in float32 and rounded where the host rounds.

  Version 1 with the mean square norm of language models, whose weight some keep as an
  offset from one, and which some round before the weight as well.
  """
  status draft

  dim M, D
  param eps = 1e-6

  in  x [rows M, D] : host
  out y [rows M, D] : host

  slot w? [D]
  slot b? [D]  when norm is layer

  variant norm             { rms, layer }
  variant norm_weight_mode { direct, offset }
  variant norm_rounding    { after_weight, before_weight }
  combinations {
    all except (
      norm is layer and norm_weight_mode is offset,
      norm is layer and norm_rounding is before_weight
    )
  }

  reference {
    point x_in = x
    let n = match norm { rms => rms_norm(f32(x_in), eps), layer => layer_norm(f32(x_in), eps) }
    let n = f32(cast(n, x))   when norm_rounding is before_weight
    let n = n * f32(w)        when present w and norm_weight_mode is direct
    let n = n * (1 + f32(w))  when present w and norm_weight_mode is offset
    let n = n + f32(b)        when present b
    yield y = cast(n, x)
  }

  discover {
    role norm : rms_norm (w) at seat tells norm_weight_mode tells norm_rounding gives eps
    variant norm = rms
    point x_in = input
    boundary at seat { x = input, y = output }
  }

  discover {
    role norm : layer_norm (w, b) at seat gives eps
    variant norm = layer
    variant norm_weight_mode = direct
    variant norm_rounding = after_weight
    point x_in = input
    boundary at seat { x = input, y = output }
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, vendor) }
}
