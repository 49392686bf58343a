frt 1

structure vision_ffn version 3 {
  """Feed-forward block of a vision transformer's encoder layer.

  Version 2 with what other families have: the exact gelu (erf) and products without
  biases (Cosmos). A gelu is named by its form.
  """
  status draft

  dim M, D, F
  param eps = 1e-6

  in  x [rows M, D] : host
  out y [rows M, D] : host

  slot w_norm  [D]  when norm_affine is learned
  slot b_norm? [D]  when norm_affine is learned
  slot w_fc1   [D, F]
  slot b_fc1   [F]  when bias is add
  slot w_fc2   [F, D]
  slot b_fc2   [D]  when bias is add

  variant activation  { gelu_tanh, gelu_erf }
  variant norm_affine { learned, identity }
  variant bias        { add, none }

  reference {
    let h = match norm_affine {
      learned => native_layer_norm(f32(x), eps, f32(w_norm)),
      identity => native_layer_norm(f32(x), eps)
    }
    let h = native_layer_norm(f32(x), eps, f32(w_norm), f32(b_norm))  when present b_norm
    point x_after_norm = cast(h, x)
    let a = x_after_norm @ w_fc1
    let a = a + b_fc1                                                 when bias is add
    point hidden_after_act = match activation { gelu_tanh => gelu_tanh(a), gelu_erf => gelu_erf(a) }
    let o = hidden_after_act @ w_fc2
    let o = o + b_fc2                                                 when bias is add
    yield y = x + o
  }

  seam mlp { from x_after_norm to o  gate cosine >= 0.995 }

  discover mlp {
    role fc1  : linear (w_fc1, b_fc1)
    role fc2  : linear (w_fc2, b_fc2)
    role act  : activation tells activation
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
