frt 1

structure modnorm_qkv_chain version 3 {
  """A modulated LayerNorm and the projections behind it.

  `scale_shift` projects one conditioning vector a batch row, and ends at the projections.
  `per_token_table` adds a table with one row a token to the block's own and takes six
  chunks of it: shift, scale and gate of the attention, then of the feed-forward part.
  That modulation is written inline in the block, so the block is the region: what the
  attentions compute between projections stays the host's.
  """
  status draft

  dim B, M, D, C, F, Nq, Nk, Nv
  param eps = 1e-5

  in  x     [B, M, D] : host
  in  cond  [B, C] : host        when modulation is scale_shift
  in  table [B, M, 6, D] : host  when modulation is per_token_table
  out q     [B, M, Nq] : host    when modulation is scale_shift
  out k     [B, M, Nk] : host    when modulation is scale_shift and fanout is qkv
  out v     [B, M, Nv] : host    when modulation is scale_shift and fanout is qkv
  out y     [B, M, D] : host     when modulation is per_token_table

  slot w_cond [C, 2 * D]  when modulation is scale_shift
  slot b_cond [2 * D]     when modulation is scale_shift
  slot steps  [6, D]      when modulation is per_token_table
  slot w_q    [D, Nq]
  slot b_q?   [Nq]
  slot w_k    [D, Nk]     when fanout is qkv
  slot b_k?   [Nk]        when fanout is qkv
  slot w_v    [D, Nv]     when fanout is qkv
  slot b_v?   [Nv]        when fanout is qkv
  slot w_o    [Nq, D]     when modulation is per_token_table
  slot b_o    [D]         when modulation is per_token_table
  slot w_up   [D, F]      when modulation is per_token_table
  slot b_up   [F]         when modulation is per_token_table
  slot w_down [F, D]      when modulation is per_token_table
  slot b_down [D]         when modulation is per_token_table

  part self_attention : host fn (q, k, v) -> q  when modulation is per_token_table
  part cross_attention : host fn (h) -> h       when modulation is per_token_table

  variant modulation { scale_shift, per_token_table }
  variant fanout     { qkv, q_only }
  combinations { all except (modulation is per_token_table and fanout is q_only) }

  reference {
    let n = native_layer_norm(f32(x), eps)
    let style = linear(silu(cond), w_cond.T, b_cond)  when modulation is scale_shift otherwise x
    let t = f32(table) + f32(steps)                   when modulation is per_token_table otherwise n
    let m = match modulation {
      scale_shift => cast(n, x) * (1 + unsqueeze(chunk(style, 2)[0], 1)) + unsqueeze(chunk(style, 2)[1], 1),
      per_token_table => cast(n * (1 + t[:, :, 1]) + t[:, :, 0], x)
    }
    point attn_in = m
    let qp = linear(attn_in, w_q.T, b_q)              when present b_q otherwise linear(attn_in, w_q.T)
    let kp = linear(attn_in, w_k.T)                   when fanout is qkv and not present b_k otherwise attn_in
    let kp = linear(attn_in, w_k.T, b_k)              when present b_k
    let vp = linear(attn_in, w_v.T)                   when fanout is qkv and not present b_v otherwise attn_in
    let vp = linear(attn_in, w_v.T, b_v)              when present b_v
    yield q = qp                                      when modulation is scale_shift
    yield k = kp                                      when modulation is scale_shift and fanout is qkv
    yield v = vp                                      when modulation is scale_shift and fanout is qkv

    point o_in = self_attention(qp, kp, vp)                    when modulation is per_token_table
    let o = linear(o_in, w_o.T, b_o)                           when modulation is per_token_table otherwise x
    let h = cast(f32(x) + o * t[:, :, 2], x)                   when modulation is per_token_table otherwise x
    let h = h + cross_attention(h)                             when modulation is per_token_table
    let n = native_layer_norm(f32(h), eps)                     when modulation is per_token_table
    point ffn_in = cast(n * (1 + t[:, :, 4]) + t[:, :, 3], x)  when modulation is per_token_table
    point ffn_hid = gelu_tanh(linear(ffn_in, w_up.T, b_up))    when modulation is per_token_table
    let f = linear(ffn_hid, w_down.T, b_down)                  when modulation is per_token_table otherwise x
    yield y = cast(f32(h) + f32(f) * t[:, :, 5], x)            when modulation is per_token_table
  }

  discover {
    form block
    role steps  : parameter (steps)
    role before : layer_norm gives eps
    role q      : linear (w_q, b_q)
    role k      : linear (w_k, b_k)
    role v      : linear (w_v, b_v)
    role o      : linear (w_o, b_o)
    role after  : layer_norm gives eps
    role up     : linear (w_up, b_up)
    role down   : linear (w_down, b_down)
    called q (to_q, q_proj, q)
    called k (to_k, k_proj, k)
    called v (to_v, v_proj, v)
    called table (temb, e)
    variant modulation = per_token_table
    variant fanout = qkv
    point attn_in = input of q
    point o_in    = input of o
    point ffn_in  = input of up
    point ffn_hid = input of down
    boundary at seat { x = input, table = arg table, y = output }
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (host_chain) }

  evidence """
  GROOT's blocks project one vector a batch row; Wan 2.2 adds a table with one row a token.
  In that form four activations are measured, at the ends of the products that the block owns.
  A kernel writes the modulated norm once, in FP8, for all three projections.
  """
}
