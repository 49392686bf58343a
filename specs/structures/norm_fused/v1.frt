frt 1

structure norm_fused version 1 {
  """LayerNorm with weight and bias, computed in float32 and rounded once."""
  status draft

  dim M, D
  param eps = 1e-6

  in  x [rows M, D] : host
  out y [rows M, D] : host

  slot w [D]
  slot b [D]

  reference {
    point x_in = x
    let n = layer_norm(f32(x_in), eps)
    yield y = cast(n * f32(w) + f32(b), x)
  }

  discover {
    role norm : layer_norm (w, b) at seat gives eps
    point x_in = input
    boundary at seat { x = input, y = output }
  }

  require for bf16 { dtype(x) is f32 }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, vendor) }
}
