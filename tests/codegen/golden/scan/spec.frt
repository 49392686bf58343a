frt 1

structure leaky_sum version 1 {
  """A running sum that forgets; the state may come in and goes out again."""
  dim B, S, D

  in  v      [B, S, D] : f32
  in  decay  [B, S, D] : f32
  in  state? [B, D]    : f32 = zeros
  out y      [B, S, D] : f32
  out last   [B, D]    : f32

  reference {
    scan t in S over v[:, t], decay[:, t] carry s = state {
      let kept = s * decay[:, t]
      next s = kept + v[:, t]
      emit sums = s / S
    }
    yield y = sums
    yield last = s
  }
}
