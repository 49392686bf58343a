frt 1

structure s version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  slot w [D, D]
  reference {
    point x_in = x
    yield y = x_in @ w
  }
}

pipeline p version 1 {
  family cond_iter_pipeline
  window image  : swap from caller
  window noise  : swap from caller
  window action : swap readback
  window text   : readback
  buffer cond   : static
  buffer cache  : mutable
  state cache writers (look, act) readers act
  state table cadence plan
  stage look { cadence observation read image write (cond, cache) capture host_dependent }
  stage act {
    cadence tick
    read (cond, noise)
    read_write cache
    write action
    capture host_dependent
  }
  stage tell? { cadence tick read action write text capture host_dependent }
  loop run { steps = binding shapes fixed runs act }
  embeds s version 1
HERE
}
