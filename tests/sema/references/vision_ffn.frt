frt 1

structure vision_ffn version 2 {
  dim M, D, F
  param eps = 1e-6

  in  x [rows M, D] : host
  out y [rows M, D] : host

  slot w_norm [D]  when norm_affine is learned
  slot b_norm [D]  when norm_affine is learned
  slot w_fc1  [D, F]
  slot b_fc1  [F]
  slot w_fc2  [F, D]
  slot b_fc2  [D]

  variant norm_affine { learned, identity }

  reference {
    let n = match norm_affine {
      learned => layer_norm(f32(x), eps, f32(w_norm), f32(b_norm)),
      identity => layer_norm(f32(x), eps)
    }
    point x_after_norm = cast(n, x)
    point hidden_after_act = gelu_tanh(x_after_norm @ w_fc1 + b_fc1)
    let o = hidden_after_act @ w_fc2 + b_fc2
    yield y = x + o
  }

  seam mlp { from x_after_norm to o  gate cosine >= 0.995 }
  gate boundary on real_distribution { cosine >= 0.999, max_abs, rel_l2 <= 0.05 }
}
