frt 1

structure linear_proj version 1 {
  """One projection with an optional bias and an epilogue.

  Elementwise work exists here only as an epilogue of the product. The product
  is taken in float32 and rounded once, whatever the host's dtype.
  """
  status draft

  dim M, K, N

  in  x         [rows M, K] : host
  in  residual? [rows M, N] : host  when epilogue is residual_add
  out y         [rows M, N] : host

  slot w  [K, N]
  slot b? [N]  when bias is add

  variant bias     { none, add }
  variant epilogue { none, gelu, residual_add }

  reference {
    point x_in = x
    let a = f32(x_in) @ f32(w)
    let a = a + f32(b)         when bias is add
    let a = gelu_tanh(a)       when epilogue is gelu
    let a = a + f32(residual)  when epilogue is residual_add
    yield y = cast(a, x)
  }

  discover {
    role proj : linear (w, b) at seat
    variant epilogue = none
    point x_in = input
    boundary at seat { x = input, y = output }
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, vendor) }
  qualify { K * N >= 1048576 }
  # Below, the host's own product is as fast; above, without a bias, it is again.
  qualify for fp8_static when bias is add { M * K * N >= 200000000 }
  qualify for fp8_static when bias is none { 20000000 <= M * K * N <= 1000000000 }
  # What is quantised already pays at any size.
  qualify for fp8_wire { M * K * N >= 0 }
}
