frt 1

structure gated_delta_core version 1 {
  """Gated delta rule: a recurrence over keys and values with an explicit state.

  Each step forgets a part of the state, reads what the key recalls, and writes the
  difference to the value back under the same key. Decoding is the same recurrence with
  one step. The state comes in and goes out in float32: rounding it between calls would
  let the error grow with the number of tokens.
  """
  status draft

  dim B, S, H, Dk, Dv
  param eps = 1e-6

  in  q           [B, S, H, Dk] : host
  in  k           [B, S, H, Dk] : host
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
    let qs = qn * Dk ** -0.5
    let vf = f32(v)
    let decay = exp(f32(log_decay))
    let strength = f32(beta)
    scan t in S over qs[:, t], kn[:, t], vf[:, t], decay[:, t], strength[:, t] carry s = state {
      let kept = contract(s, decay[:, t])
      let recalled = contract(kept, kn[:, t], over Dk)
      let delta = contract(vf[:, t] - recalled, strength[:, t])
      next s = kept + contract(kn[:, t], delta)
      emit o = contract(s, qs[:, t], over Dk)
    }
    yield y = cast(o, q)
    yield final_state = s
  }

  require { kept(state) is explicit, repeats(y) is exact }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, vendor) }
  evidence """
  48 of 64 layers of Qwen3.6 carry this state at 48 heads of width 128, Nex-N2 at 32 heads.
  Prefill may run in chunks; it has to end in a state that the next step accepts.
  """
}
