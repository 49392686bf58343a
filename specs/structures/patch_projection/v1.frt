frt 1

structure patch_projection version 1 {
  """Patches that a processor has laid out one a row, projected to the width of a tower.

  Hosts write it as a convolution whose kernel and stride are the whole patch. Without
  padding, dilation, groups and overlap that is one product over flattened patches.
  """
  status draft

  dim M, K, N

  in  x [rows M, K] : host
  out y [rows M, N] : host

  slot w [K, N]
  slot b [N]  when bias is add

  variant bias { none, add }

  reference {
    point x_in = x
    let p = match bias { none => linear(x_in, w.T), add => linear(x_in, w.T, b) }
    yield y = p
  }

  discover {
    role proj : conv (w, b)
    point x_in = input
    boundary at seat { x = input, y = output }
  }

  require {
    kernel(w) is stride,
    padding(w) == 0,
    dilation(w) == 1,
    groups(w) == 1,
    conv_rank(w) == 3
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, rel_l2 }
  gate latency  per shape { net_positive including boundary, against (host_chain) }
  evidence """
  On an RTX 5090 flash-rt measured the projection of 6256 patches of width 1536 (Qwen3-VL) at
  0.127 ms against 1.294 ms for the convolution, and 768 of width 1176 (LingBot-VLA) at 0.0327 ms
  against 0.336 ms.
  """
}
