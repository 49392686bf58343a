frt 1

structure example version 1 {
  dim M, K, N
  in  x [rows M, K] : host
  out y [rows M, N] : host
  slot w [K, N]
  slot b? [N]  when bias is add
  variant bias { none, add }
  reference {
    point x_in = x
    let a = f32(x_in) @ f32(w)
    let a = a + f32(b)  when bias is add
    yield y = cast(a, x)
  }
}

impl example_form for example version 1 {
  HERE
}
