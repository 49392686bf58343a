frt 1

structure example version 1 {
  dim M, K, N
  in  x [rows M, K] : host
  out y [rows M, N] : host
  slot w [K, N]
  HERE
  reference { yield y = x @ w }
}
