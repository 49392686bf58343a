frt 1

structure q version 1 {
  dim M, K, N[j]
  index j in 1..=3
  in  x    [rows M, K] : host
  out y[j] [rows M, N[j]] : host
  slot w[j] [K, N[j]]
  reference {
    point x_in = x
    each j { yield y[j] = x_in @ w[j] }
  }
}
