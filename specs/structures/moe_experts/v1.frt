frt 1

structure moe_experts version 1 {
  """A router and its bank of gated experts, stacked in three-dimensional weights.

  Each row goes to the K experts that its router likes best. The router's softmax runs in
  float32 over all experts; its K weights may be scaled to add up to one. Contributions
  are added in float32 and rounded once. The reference computes every expert for every
  row, which is slow and plain; the result is that of the K chosen.
  """
  status draft

  dim M, D, F, E, K

  in  x [rows M, D] : host
  out y [rows M, D] : host

  slot w_router  [D, E]
  slot w_gate_up [E, D, 2 * F]
  slot w_down    [E, F, D]

  variant activation { silu, gelu }
  variant weights    { normalized, plain }

  reference {
    let p = softmax(f32(x @ w_router), over E)
    let kept = top_k(p, K, 0)
    let chosen = top_k(p, K, 1)
    let kept = kept / unsqueeze(sum(kept, over K), -1)  when weights is normalized
    let route = cast(kept, x)
    point x_in = x
    let h = contract(x_in, w_gate_up, over D)
    let g = chunk(h, 2)[0]
    let u = chunk(h, 2)[1]
    point act_after_mul = match activation { silu => silu(g), gelu => gelu_tanh(g) } * u
    let o = contract(act_after_mul, w_down, over F)
    let share = f32(spread(route, chosen, E))
    let routed = cast(contract(f32(o), share, over E), o)
    yield y = routed
  }

  seam experts { from (x_in, chosen, route) to routed  gate cosine >= 0.995 }

  require { K <= E }

  discover experts {
    role gate_up : parameter (w_gate_up)
    role down    : parameter (w_down)
    role act     : activation tells activation { silu => silu, gelu_tanh => gelu }
    role router  : parameter (w_router) around seat
    dims (K)
    point x_in = input
    point act_after_mul none "each expert's product is made and used inside the experts' own loop"
    boundary around seat { x = input, y = output }
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, unfused_chain, vendor) }
  qualify { D * F * E >= 1048576 }
  evidence """
  Qwen3-MoE and Qwen3-Next keep their experts in stacked parameters: most of a checkpoint is
  here. flash-rt serves them without an entry in its catalog.
  """
}
