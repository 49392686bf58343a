frt 1

structure modnorm_qkv_chain version 3 {
  """A modulated LayerNorm and the projections behind it.

  Two ways of conditioning. `scale_shift` projects one vector a batch row. `per_token_table`
  adds a table with one row a token to the block's own modulation and takes its chunks; the
  modulation is inline in the host's block then, so the block owns the chain and with it the
  front of the feed-forward part, which reads the next chunks of the same table.
  """
  status draft

  dim B, M, D, C, Nq, Nk, Nv
  param eps = 1e-5

  in  x     [B, M, D] : host
  in  cond  [B, C] : host        when modulation is scale_shift
  in  table [B, M, 6, D] : host  when modulation is per_token_table
  out q     [B, M, Nq] : host    when modulation is scale_shift
  out k     [B, M, Nk] : host    when fanout is qkv and modulation is scale_shift
  out v     [B, M, Nv] : host    when fanout is qkv and modulation is scale_shift
  out y     [B, M, D] : host     when modulation is per_token_table

  slot w_cond [2 * D, C]                     when modulation is scale_shift
  slot b_cond [2 * D]                        when modulation is scale_shift
  slot steps  [6, D]                         when modulation is per_token_table
  slot w_q    [Nq, D]
  slot b_q?   [Nq]
  slot w_k    [Nk, D]                        when fanout is qkv
  slot b_k?   [Nk]                           when fanout is qkv
  slot w_v    [Nv, D]                        when fanout is qkv
  slot b_v?   [Nv]                           when fanout is qkv
  slot ffn : structure vision_ffn version 2  when modulation is per_token_table

  part attention : host fn (q, k, v) -> y  when modulation is per_token_table

  variant modulation { scale_shift, per_token_table }
  variant fanout     { qkv, q_only }
  combinations { all except (modulation is per_token_table and fanout is q_only) }

  reference {
    let n = cast(layer_norm(f32(x), eps), x)
    # One pair a batch row, or six chunks a token.
    point attn_in = match modulation {
      scale_shift => n * (
        1 + unsqueeze(chunk(linear(silu(cond), w_cond, b_cond), 2)[0], 1)
      ) + unsqueeze(chunk(linear(silu(cond), w_cond, b_cond), 2)[1], 1),
      per_token_table => n * (1 + (table + steps)[:, :, 1]) + (table + steps)[:, :, 0]
    }
    let qv = linear(attn_in, w_q)
    let qv = qv + b_q              when present b_q
    let kv = linear(attn_in, w_k)  when fanout is qkv otherwise qv
    let kv = kv + b_k              when present b_k
    let vv = linear(attn_in, w_v)  when fanout is qkv otherwise qv
    let vv = vv + b_v              when present b_v
    yield q = qv                   when modulation is scale_shift
    yield k = kv                   when fanout is qkv and modulation is scale_shift
    yield v = vv                   when fanout is qkv and modulation is scale_shift

    point o_in = attention(qv, kv, vv)                    when modulation is per_token_table
    let h = x + o_in * (table + steps)[:, :, 2]           when modulation is per_token_table otherwise x
    let m = cast(layer_norm(f32(h), eps), x)
    point ffn_in = m * (
      1 + (table + steps)[:, :, 4]
    ) + (table + steps)[:, :, 3] when modulation is per_token_table
    point ffn_hid = ffn(ffn_in)                           when modulation is per_token_table
    yield y = h + ffn_hid * (table + steps)[..., 5, 0:D]  when modulation is per_token_table
  }

  seam projections { from attn_in to (qv, kv, vv)  gate cosine >= 0.995, rel_l2 <= 0.02  gate max_abs }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (host_chain) }
}

binding ltx_block {
  """A video transformer whose blocks take the table by keyword."""
  host diffusers ">=0.35" class LTXVideoTransformer3DModel
  dims { D = config.num_attention_heads * config.attention_head_dim }

  each i in 0..config.num_layers {
    seat block : modnorm_qkv_chain version 3 at transformer_blocks.{i} {
      form block
      dims { D = D, Nq = D, Nk = D, Nv = D }
      variant modulation = per_token_table
      variant fanout = qkv
      slot steps = scale_shift_table : in_out
      slot w_q   = attn1.to_q.weight : in_out
      slot w_k   = attn1.to_k.weight : in_out
      slot w_v   = attn1.to_v.weight : in_out
      slot ffn   = ff.net.0.proj.weight
      point attn_in = input of attn1
      point o_in    = input of attn1.to_out.0
      point ffn_in  = input of ff
      point ffn_hid = input of ff.net.2
      boundary at transformer_blocks.{i} { x = input, table = arg temb, y = output }
      expect call keyword
    }
  }
}
