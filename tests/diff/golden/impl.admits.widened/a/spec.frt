frt 1

structure s version 1 {
  """A feed-forward part."""
  dim M, D, F
  param eps = 1e-6
  in  x  [rows M, D] : host
  in  g? [rows M, D] : host
  out y  [rows M, D] : host
  slot w_up   [D, F]
  slot w_down [F, D]
  variant act   { gelu, silu }
  variant gated { no, yes } default no
  reference {
    point x_in = cast(rms_norm(f32(x), eps), x)
    let u = x_in @ w_up
    point hidden = match act { gelu => gelu_tanh(u), silu => silu(u) }
    let o = hidden @ w_down
    let o = o * 2  when gated is yes
    let r = o * g  when present g otherwise o
    yield y = x + r
  }
  seam mlp { from x_in to o  gate cosine >= 0.995 }
  gate boundary on real_distribution { cosine >= 0.999, max_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, unfused_chain) }
  require { D % 16 == 0 }
  qualify { D * F >= 1048576 }
  evidence "Measured once."
}
impl fp8 for s.mlp version 1 {
  pack  up    = quantize(w_up.T, fp8_e4m3, per tensor)
  pack  down  = quantize(w_down.T, fp8_e4m3, per tensor)
  scale in_s  = static(x_in)
  scale hid_s = static(hidden)
  numerics { acc f32, out bf16 }
  admits x_in { bf16, fp16 }
  only gated (no)
  rung local "mine" version 1 {
    envelope { F % 16 == 0 }
    call fp8_mlp(bf16(x_in), up, down, in_s, up.scale, hid_s, down.scale)
  }
  rung torch { envelope { F % 16 == 0 } lower matmul to scaled_mm }
  rung emulate
}
