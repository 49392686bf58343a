frt 1

structure t version 1 {
  dim M, D, K
  in  x [rows M, D] : host
  out y [rows M, D] : host
  slot a? [D, K]
  slot c? [K, D]
  slot w [D]
  reference {
    point x_in = x * w
    let r = x_in @ a @ c when present a and present c otherwise x_in
    yield y = r
  }
}
