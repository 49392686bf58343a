frt 1

structure core version 1 {
  dim B, H, S, D
  in  q     [B, H, S, D] : host
  in  k     [B, H, S, D] : host
  in  cos   [B, S, D / 2] : host
  out y     [B, S, H, D] : host
  reference {
    point q_in = q
    let s = rope_half(q_in + k, unsqueeze(cos, 1), unsqueeze(cos, 1), D)
    yield y = transpose(s, 1, 2)
  }
}

structure table version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  slot w     [D, D]
  slot shift [D]
  reference { yield y = x @ w + shift }
}

binding host {
  host transformers ">=5.0,<6" class LlamaForCausalLM
  dims { D = config.hidden_size, L = config.num_hidden_layers }
  each i in 0..L {
    seat used : table version 1 at model.layers.{i}.used {
      dims { D = D }
      slot w     = weight : out_in
      slot shift = bias
      boundary at model.layers.{i}.used { x = input, y = output }
    }
HERE
  }
}
