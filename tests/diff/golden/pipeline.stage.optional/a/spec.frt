frt 1

structure t version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  slot w [D]
  reference {
    point x_in = x * w
    yield y = x_in
  }
}
pipeline tick version 1 {
  family cond_iter_pipeline
  window image  : swap from caller cadence observation
  window action : swap readback cadence tick
  buffer seen   : static cadence observation
  stage look {
    cadence observation
    read image
    write seen
    capture host_dependent
  }
  stage act {
    cadence tick
    read seen
    write action
    capture required
  }
  embeds (t version 1)
  gate parity on action { cosine >= 0.999, against (host_eager_same_seed) }
}
