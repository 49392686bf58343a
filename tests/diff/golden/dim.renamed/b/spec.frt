frt 1

structure t version 1 {
  dim M, H
  in  x [rows M, H] : host
  out y [rows M, H] : host
  slot w [H]
  reference {
    point x_in = x * w
    yield y = x_in
  }
}
