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

structure other version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  reference { yield y = x * x }
}

pipeline p version 1 {
  family cond_iter_pipeline
  window image  : swap from caller
  window action : swap readback
  buffer cond   : static
  stage look { cadence observation read image write cond capture host_dependent }
  stage act { cadence tick read cond write action capture required }
  stage tell? { cadence tick read_write action capture host_dependent }
  loop run { steps = binding shapes fixed runs act }
  loop more { steps = 3 shapes fixed runs tell }
  embeds s version 1
  gate parity on action { cosine >= 0.999, against (host_eager_same_seed) }
}

binding b {
  host transformers ">=5.0" class Model
  dims { D = config.hidden_size }
  seat one : s version 1 at proj {
    dims { D = D }
    slot w = weight : out_in
    point x_in = input
    boundary at proj { x = input, y = output }
  }
  seat two : other version 1 at norm {
    dims { D = D }
    boundary at norm { x = input, y = output }
  }
HERE
}
