frt 1

structure decoder_block version 1 {
  """A transformer block: two sublayers, each a norm, a region and the residual around both.

  The block owns the order of things only; norms and feed-forward part are structures of
  their own, and the attention stays the host's. Adaptive norms also gate what is added to
  the residual. What the block sees and its parts do not is the sum between the sublayers.
  """
  status draft

  dim B, S, D, C

  in  x    [B, S, D] : host
  in  cond [1, C] : host  when norm is adaln_rms
  out y    [B, S, D] : host

  slot norm_in : structure adaln_producer version 1 with (
    norm is rms,
    style is scale_shift_gate,
    epilogue is none
  ) when norm is adaln_rms
  slot norm_out : structure adaln_producer version 1 with (
    norm is rms,
    style is scale_shift_gate,
    epilogue is none
  ) when norm is adaln_rms
  slot plain_in : structure norm_fused version 2 with (norm is rms)   when norm is rms
  slot plain_out : structure norm_fused version 2 with (norm is rms)  when norm is rms
  slot ffn : structure decoder_ffn.mlp version 1

  part attention : host fn (h) -> h

  variant norm { adaln_rms, rms }

  reference {
    let h = match norm { adaln_rms => norm_in(x, cond).y, rms => plain_in(x) }
    let a = attention(h)
    let a = a * norm_in(x, cond).gate   when norm is adaln_rms
    let r = x + a
    let h = match norm { adaln_rms => norm_out(r, cond).y, rms => plain_out(r) }
    let f = ffn(h)
    let f = f * norm_out(r, cond).gate  when norm is adaln_rms
    yield y = r + f
  }

  require { other_children == 0 }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, vendor) }
  evidence """
  Both adaptive norms take one conditioning, so what they look up for a step is found once.
  Measured by flash-rt on the 18 blocks of the expert of pi05: 26.581 to 25.392 ms, 6236 launches
  to 5040. The residual's sum is where the fold pays, the attention's transposes where it wins.
  """
}
