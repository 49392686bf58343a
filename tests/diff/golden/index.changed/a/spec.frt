frt 1

structure q version 1 {
  dim M, K, N[i]
  index i in 1..=3
  in  x    [rows M, K] : host
  out y[i] [rows M, N[i]] : host
  slot w[i] [K, N[i]]
  reference {
    point x_in = x
    each i { yield y[i] = x_in @ w[i] }
  }
}
