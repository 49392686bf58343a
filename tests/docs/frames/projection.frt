frt 1

structure example version 1 {
  dim M, K, N
  in  x [rows M, K] : host
  out y [rows M, N] : host
  variant bias     { none, add }
  variant residual { none, add }
  HERE
  reference {
    let a = x @ w
    let a = a + b  when bias is add
    let a = a + x @ w  when residual is add
    yield y = a
  }
}
