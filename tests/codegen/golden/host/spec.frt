frt 1

structure norm version 1 {
  """A norm with an optional bias."""
  dim M, D
  param eps = 1e-6
  in  x [rows M, D] : host
  out y [rows M, D] : host
  slot w  [D]
  slot b? [D]  when bias is add
  variant bias { none, add } default none
  reference {
    point x_in = x
    let n = layer_norm(f32(x_in), eps) * f32(w)
    let n = n + f32(b)  when bias is add
    yield y = cast(n, x)
  }
}

impl plain for norm version 1 {
  numerics { acc f32, out bf16 }
  admits x_in { f32 }
  rung emulate
}

scheme plain {
  at norm version 1 { x_in: none } use plain
  otherwise keep "only norms have a form here"
}

auto { else => plain }

binding towers {
  """A host with a stack of layers, some of them special, and a norm behind."""
  host transformers ">=5" class (TowerModel, TowerForImages)

  dims {
    D = config.width ?? config.vision.hidden_size,
    Half = D / 2,
    L = config.depth
  }

  each layer in 0..L where config.kinds[layer] != "skip" {
    seat inner : norm version 1 at tower.layers.{layer}.norm when config.norms and not layer == L - 1 {
      dims { D = Half * 2 }
      variant bias = match config.norm_bias { true => add, false => none }
      param eps = config.eps ?? 1e-5
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at tower.layers.{layer} { x = input of norm, y = output of norm }
      expect class (LayerNorm)
      expect bias all of (norm)
    }
  }
  seat last : norm version 1 at tower.final {
    dims { D = D }
    slot w = ones
    point x_in = arg hidden
    boundary at tower.final { x = arg hidden, y = output }
  }
}
