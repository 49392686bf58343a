frt 1

structure s version 1 {
  dim M, D, F
  in  x [rows M, D] : host
  out y [rows M, F] : host
  slot w [D, F]
HERE
  reference {
    point x_in = x
    yield y = x_in @ w
  }
}
