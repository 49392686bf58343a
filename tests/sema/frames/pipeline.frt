frt 1

structure s version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  slot w [D, D]
  reference {
    point x_in = x
    let o = x_in @ w
    yield y = o
  }
  seam cut { from x_in to o  gate cosine >= 0.9 }
}

pipeline p version 1 {
  family cond_iter_pipeline
  window image  : swap from caller
  window words  : staged
  window action : swap readback
  window done   : host
  buffer cond   : static
  buffer cache  : mutable
  gate parity on action { cosine >= 0.999, against (host_eager_same_seed) }
HERE
}
