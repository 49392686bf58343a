frt 1

structure s version 1 {
  dim M, D, F
  param eps = 1e-6
  param gain
  in  x     [rows M, D] : host
  in  extra [rows M, D] : host  when kind is more
  out y     [rows M, D] : host
  slot w_norm [D]
  slot w_up   [D, F]
  slot w_down [F, D]
  slot b?     [D]  when bias is add
  slot b_more [F]  when kind is more
  variant bias { none, add }
  variant kind { less, more }  default less
  reference {
    let h = rms_norm(x, eps) * w_norm * gain
    let h = h + extra     when kind is more
    point x_in = h
    let u = x_in @ w_up
    let u = u + b_more    when kind is more
    point hidden = silu(u)
    let o = hidden @ w_down
    let o = o + b         when bias is add
    yield y = o + x
  }
  seam mlp { from x_in to o  gate cosine >= 0.99 }
}

structure pack version 1 {
  dim M, K
  index i in 2..=3
  dim N[i]
  in  x    [rows M, K] : host
  out y[i] [rows M, N[i]] : host
  slot w[i]  [K, N[i]]
  slot c[i]? [N[i]]
  reference {
    each i {
      let a = x @ w[i]
      let a = a + c[i]  when present c
      yield y[i] = a
    }
  }
}

binding host {
  host transformers ">=5.0,<6" class LlamaForCausalLM
  dims { D = config.hidden_size, F = config.intermediate_size, L = config.num_hidden_layers }
  each i in 0..L {
    seat used : pack version 1 at model.layers.{i}.attn {
      dims { K = D, N[0] = D, N[1] = F }
      siblings prove (shared_input) { w[0] = q.weight : out_in, w[1] = k.weight : out_in }
    }
HERE
  }
}
