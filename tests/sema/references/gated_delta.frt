frt 1

structure gated_delta version 1 {
  dim B, S, H, Dk, Dv

  in  q         [B, S, H, Dk] : host
  in  k         [B, S, H, Dk] : host
  in  v         [B, S, H, Dv] : host
  in  log_decay [B, S, H] : host
  in  beta      [B, S, H] : host
  in  state?    [B, H, Dk, Dv] : f32 = zeros
  out y         [B, S, H, Dv] : host
  out final     [B, H, Dk, Dv] : f32

  reference {
    let qn = l2norm(f32(q), 1e-6) * Dk ** -0.5
    let kn = l2norm(f32(k), 1e-6)
    let vf = f32(v)
    let decay = exp(f32(log_decay))
    let gain = f32(beta)
    scan t in S over qn[:, t], kn[:, t], vf[:, t], decay[:, t], gain[:, t] carry s = state {
      let kept = contract(s, decay)
      let memory = contract(kept, kn, over Dk)
      let delta = contract(vf - memory, gain)
      let now = kept + contract(kn, delta)
      next s = now
      emit o = contract(now, qn, over Dk)
    }
    yield y = cast(o, q)
    yield final = s
  }
}
