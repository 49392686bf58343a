frt 1

structure patch_projection version 1 {
  dim M, K, N
  in  x [rows M, K] : host
  out y [rows M, N] : host
  slot w [N, K]
  slot b? [N]  when bias is add
  variant bias { none, add }
  reference {
    point x_in = x
    yield y = match bias { none => linear(x_in, w), add => linear(x_in, w, b) }
  }
}
