frt 1

structure vision_mlp version 1 {
  """The feed-forward block of a vision transformer: up, gelu, down."""

  dim M, D, F

  in  x [rows M, D] : host
  out y [rows M, D] : host

  slot w_up   [D, F]
  slot b_up   [F]
  slot w_down [F, D]
  slot b_down [D]

  reference {
    point x_in = x
    let h = f32(x_in) @ f32(w_up) + f32(b_up)
    point act = cast(gelu_tanh(h), x)
    yield y = cast(f32(act) @ f32(w_down) + f32(b_down), x)
  }

  gate boundary on real_distribution { cosine >= 0.995, max_abs }
}

pipeline caption version 1 {
  """Encode an image, then decode a text of fixed length."""
  family autoregressive_decode

  window image    : swap from caller cadence request
  window tokens   : swap cadence token
  window text     : readback cadence request
  buffer features : static cadence request
  state cache cadence token writers (encode, decode) readers decode

  stage encode {
    """The vision tower, once an image."""
    cadence request
    read image
    write (features, tokens, cache)
    capture host_dependent
  }

  stage decode {
    cadence token
    read features
    read_write (tokens, cache)
    write text?
    capture required
  }

  loop words {
    steps = binding
    shapes fixed
    runs decode
  }

  embeds vision_mlp version 1

  conform features_are_read_only : read_only_in_loop (features)
  conform the_image_is_explicit  : explicit_window (image)
  conform as_many_words_as_told  : fixed_loop (words)

  gate parity on text { cosine >= 0.999, max_abs, against (host_eager_same_seed) }
  gate net_win per request { request_latency, stage_latency, against (host_eager) }
}

binding captioner {
  host transformers ">=5.6,<6" class SiglipVisionModel
  host native module "captions.engine.Captioner"
  dims { D = config.hidden_size, F = config.intermediate_size, L = config.num_hidden_layers }

  each i in 0..L {
    seat mlp : vision_mlp version 1 at encoder.layers.{i}.mlp {
      dims { D = D, F = F }
      slot w_up   = fc1.weight : out_in
      slot b_up   = fc1.bias
      slot w_down = fc2.weight : out_in
      slot b_down = fc2.bias
      point x_in = input
      point act  = input of fc2
      boundary at encoder.layers.{i}.mlp { x = input, y = output }
    }
  }

  pipeline caption version 1 {
    stage encode at encoder {
      window image = input of embeddings
      buffer features = output of encoder
      capture eager
    }
    stage decode at head {
      window text = output of head
      capture graph "one graph for all words"
    }
    loop words steps = 16
    cadence request runs (encode, decode)

    coverage complete_hot_path {
      hot_path (tower, word_head, word_loop)
      segment tower : structure in encode { seats mlp }
      segment word_head : host_stage in decode { seam "the attention pooling head" }
      segment word_loop : control in decode { seam "the loop over words" }
    }
  }
}
