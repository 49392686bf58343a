frt 1

binding siglip {
  """SigLIP vision towers as transformers builds them."""
  status draft
  host transformers ">=5.6,<6" class SiglipVisionModel

  dims {
    D = config.hidden_size,
    L = config.num_hidden_layers
  }

  each i in 0..L {
    seat norm1 : norm_fused version 1 at encoder.layers.{i}.layer_norm1 {
      dims { D = D }
      param eps = config.layer_norm_eps
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at encoder.layers.{i}.layer_norm1 { x = input, y = output }
      expect class (LayerNorm)
    }

    seat norm2 : norm_fused version 1 at encoder.layers.{i}.layer_norm2 {
      dims { D = D }
      param eps = config.layer_norm_eps
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at encoder.layers.{i}.layer_norm2 { x = input, y = output }
      expect class (LayerNorm)
    }
  }

  seat post : norm_fused version 1 at post_layernorm {
    dims { D = D }
    param eps = config.layer_norm_eps
    slot w = weight
    slot b = bias
    point x_in = input
    boundary at post_layernorm { x = input, y = output }
    expect class (LayerNorm)
  }
}
