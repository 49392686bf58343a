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
structure b version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  slot norm : structure t version 1
  part attn : host fn (h) -> o
  reference {
    let h = norm(x)
    let o = attn(h)
    yield y = x + o
  }
}
