frt 1

structure gated_delta_core version 2 {
  """Gated delta rule: a recurrence over keys and values with an explicit state.

  Version 1 with fewer heads of queries and keys than of values, each serving a group of
  them.
  """
  status draft

  dim B, S, H, Hk, Dk, Dv
  param eps = 1e-6

  in  q           [B, S, Hk, Dk] : host
  in  k           [B, S, Hk, Dk] : host
  in  v           [B, S, H, Dv] : host
  in  log_decay   [B, S, H] : host
  in  beta        [B, S, H] : host
  in  state?      [B, H, Dk, Dv] : f32 = zeros
  out y           [B, S, H, Dv] : host
  out final_state [B, H, Dk, Dv] : f32 updates state

  # Who normalises queries and keys changes what is computed here.
  variant qk_norm { in_core, on_host }

  reference {
    let qn = f32(q)
    let kn = f32(k)
    let qn = l2norm(qn, eps)  when qk_norm is in_core
    let kn = l2norm(kn, eps)  when qk_norm is in_core
    let qs = repeat(qn, H / Hk, over Hk) * Dk ** -0.5
    let ks = repeat(kn, H / Hk, over Hk)
    let vf = f32(v)
    let decay = exp(f32(log_decay))
    let strength = f32(beta)
    scan t in S over qs[:, t], ks[:, t], vf[:, t], decay[:, t], strength[:, t] carry s = state {
      let kept = contract(s, decay[:, t])
      let recalled = contract(kept, ks[:, t], over Dk)
      let delta = contract(vf[:, t] - recalled, strength[:, t])
      next s = kept + contract(ks[:, t], delta)
      emit o = contract(s, qs[:, t], over Dk)
    }
    yield y = cast(o, q)
    yield final_state = s
  }

  require { H % Hk == 0, kept(state) is explicit, repeats(y) is exact }

  discover {
    form route (
      torch_chunk_gated_delta_rule,
      via = global,
      args = (query, key, value, g, beta, initial_state)
    )
    dims (H, Hk, Dk, Dv)
    boundary at seat {
      q = arg query of torch_chunk_gated_delta_rule,
      k = arg key of torch_chunk_gated_delta_rule,
      v = arg value of torch_chunk_gated_delta_rule,
      log_decay = arg g of torch_chunk_gated_delta_rule,
      beta = arg beta of torch_chunk_gated_delta_rule,
      state = arg initial_state of torch_chunk_gated_delta_rule,
      y = output[0] of torch_chunk_gated_delta_rule,
      final_state = output[1] of torch_chunk_gated_delta_rule
    }
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, vendor) }
}
