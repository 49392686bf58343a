frt 1

structure qk_norm_rope version 1 {
  dim B, T, Hq, Hkv, D, R
  param eps = 1e-6

  in  q   [B, T, Hq, D] : host
  in  k   [B, T, Hkv, D] : host
  in  cos [B, T, R/2 | R] : f32
  in  sin [B, T, R/2 | R] : f32
  out q_rope [B, T, Hq, D] : host
  out k_rope [B, T, Hkv, D] : host

  slot head_q [D]       when scope is per_head
  slot head_k [D]       when scope is per_head
  slot proj_q [Hq * D]  when scope is projection
  slot proj_k [Hkv * D] when scope is projection

  variant scope  { per_head, projection }
  variant layout { half, interleaved }
  variant weight { direct, offset }

  require { D % 2 == 0, R % 2 == 0 }

  reference {
    let nq = match scope {
      per_head => rms_norm(f32(q), eps),
      projection => unflatten(rms_norm(flatten(f32(q), 2), eps), (Hq, D))
    }
    let nk = match scope {
      per_head => rms_norm(f32(k), eps),
      projection => unflatten(rms_norm(flatten(f32(k), 2), eps), (Hkv, D))
    }
    let wq = match scope { per_head => f32(head_q), projection => unflatten(f32(proj_q), (Hq, D)) }
    let wk = match scope { per_head => f32(head_k), projection => unflatten(f32(proj_k), (Hkv, D)) }
    let nq = nq * match weight { direct => wq, offset => 1 + wq }
    let nk = nk * match weight { direct => wk, offset => 1 + wk }
    point q_after_rope = cast(match layout {
      half => rope_half(nq, cos, sin, R), interleaved => rope_interleaved(nq, cos, sin, R)
    }, q)
    point k_after_rope = cast(match layout {
      half => rope_half(nk, cos, sin, R), interleaved => rope_interleaved(nk, cos, sin, R)
    }, k)
    yield q_rope = q_after_rope
    yield k_rope = k_after_rope
  }
}
