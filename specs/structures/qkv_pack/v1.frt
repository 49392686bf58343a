frt 1

structure qkv_pack version 1 {
  """Sibling projections of one input, computed as one packed product.

  The siblings share their input, and keep their own widths and biases (grouped
  key/value heads are narrower than the queries).
  """
  status draft

  dim M, K
  index i in 2..=8
  dim N[i]

  in  x    [rows M, K] : host
  out y[i] [rows M, N[i]] : host

  slot w[i]  [K, N[i]]
  slot b[i]? [N[i]]  when bias is add

  variant bias { none, add }

  reference {
    point x_in = x
    each i {
      let a = f32(x_in) @ f32(w[i])
      let a = a + f32(b[i])  when bias is add
      yield y[i] = cast(a, x)
    }
  }

  discover {
    role part[i] : linear (w, b)
    called part (q_proj, k_proj, v_proj)
    called part (to_q, to_k, to_v)
    called part (add_q_proj, add_k_proj, add_v_proj)
    called part (query, key, value)
    called part (q, k, v)
    point x_in = input of part
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, unfused_chain, vendor) }
  qualify { K * sum(N) >= 1048576 }
}
