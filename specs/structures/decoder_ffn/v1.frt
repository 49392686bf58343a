frt 1

structure decoder_ffn version 1 {
  """Post-attention feed-forward block of a transformer decoder layer.

  A norm, a gated MLP, and the residual around both. Adaptive hosts (AdaRMS in
  robot policies) modulate the norm's output and gate the residual branch.
  """
  status draft

  dim M, D, F
  param eps = 1e-6

  in  x           [rows M, D] : host
  in  cond_scale? [rows M, D] : host  when conditioning is ada_ln
  in  cond_shift? [rows M, D] : host  when conditioning is ada_ln
  in  cond_gate?  [rows M, D] : host  when conditioning is ada_ln
  out y           [rows M, D] : host

  slot w_norm [D]
  slot w_gate [D, F]
  slot w_up   [D, F]
  slot w_down [F, D]

  variant activation       { gelu, silu }
  variant norm_weight_mode { offset, direct }
  # Where the host rounds: once after the weight, or before the weight and after it (Qwen, Llama).
  variant norm_rounding    { after_weight, before_weight }
  variant conditioning     { none, ada_ln }

  reference {
    let h = rms_norm(f32(x), eps)
    let h = f32(cast(h, x))            when norm_rounding is before_weight
    let h = h * match norm_weight_mode { offset => 1 + f32(w_norm), direct => f32(w_norm) }
    let h = h * (1 + f32(cond_scale))  when present cond_scale
    let h = h + f32(cond_shift)        when present cond_shift
    point x_after_norm = cast(h, x)
    let g = x_after_norm @ w_gate
    let u = x_after_norm @ w_up
    point act_after_mul = match activation { gelu => gelu_tanh(g), silu => silu(g) } * u
    let o = act_after_mul @ w_down
    let r = o * cond_gate              when present cond_gate otherwise o
    yield y = x + r
  }

  seam mlp { from x_after_norm to o  gate cosine >= 0.995 }

  discover mlp {
    role gate : linear (w_gate)
    role up   : linear (w_up)
    role down : linear (w_down)
    role act  : activation tells activation { gelu_tanh => gelu, silu => silu }
    role norm : rms_norm (w_norm) around seat tells norm_weight_mode tells norm_rounding gives eps
    called norm (post_attention_layernorm, pre_feedforward_layernorm, ffn_norm)
    variant conditioning = none
    point x_after_norm  = input
    point act_after_mul = input of down
    boundary around seat { x = input of norm, y = output }
  }

  # Gate and up in one parameter, in either order.
  discover mlp {
    role both : linear (chunks(w_gate, w_up))
    role down : linear (w_down)
    role act  : activation tells activation { gelu_tanh => gelu, silu => silu }
    role norm : rms_norm (w_norm) around seat tells norm_weight_mode tells norm_rounding gives eps
    called norm (post_attention_layernorm, pre_feedforward_layernorm, ffn_norm)
    variant conditioning = none
    point x_after_norm  = input
    point act_after_mul = input of down
    boundary around seat { x = input of norm, y = output }
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, unfused_chain, vendor) }
  qualify { D * F >= 1048576 }
}
