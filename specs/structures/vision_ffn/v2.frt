frt 1

structure vision_ffn version 2 {
  """Feed-forward block of a vision transformer's encoder layer.

  LayerNorm, an MLP without a gate, and the residual around both. The norm is torch's own
  in float32; some towers have no weights in it. Both biases are added after a rounded
  product, and gelu is the tanh form.
  """
  status draft

  dim M, D, F
  param eps = 1e-6

  in  x [rows M, D] : host
  out y [rows M, D] : host

  slot w_norm  [D]  when norm_affine is learned
  slot b_norm? [D]  when norm_affine is learned
  slot w_fc1   [D, F]
  slot b_fc1   [F]
  slot w_fc2   [F, D]
  slot b_fc2   [D]

  variant activation  { gelu } default gelu
  variant norm_affine { learned, identity }

  reference {
    let h = match norm_affine {
      learned => native_layer_norm(f32(x), eps, f32(w_norm)),
      identity => native_layer_norm(f32(x), eps)
    }
    let h = native_layer_norm(f32(x), eps, f32(w_norm), f32(b_norm))  when present b_norm
    point x_after_norm = cast(h, x)
    let a = x_after_norm @ w_fc1 + b_fc1
    point hidden_after_act = match activation { gelu => gelu_tanh(a) }
    let o = hidden_after_act @ w_fc2 + b_fc2
    yield y = x + o
  }

  seam mlp { from x_after_norm to o  gate cosine >= 0.995 }

  discover mlp {
    role fc1  : linear (w_fc1, b_fc1)
    role fc2  : linear (w_fc2, b_fc2)
    role act  : activation tells activation { gelu_tanh => gelu }
    role norm : layer_norm (w_norm, b_norm) around seat gives eps
    called norm (layer_norm2, norm2, norm3, layernorm_after, final_layer_norm)
    point x_after_norm     = input
    point hidden_after_act = input of fc2
    boundary around seat { x = input of norm, y = output }
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, unfused_chain, vendor) }
  qualify { D * F >= 1048576 }
}
