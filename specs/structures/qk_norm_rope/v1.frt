frt 1

structure qk_norm_rope version 1 {
  """Norms of queries and keys, then rotary embedding of both.

  The norm's mean runs over each head, or over all heads of a projection. Position tables
  come expanded to every token, whatever geometry they are made from. Channels behind the
  rotary extent R keep their normed value. Values pass through as
  they are, where they are handed in.
  """
  status draft

  dim B, T, Hq, Hkv, D, R
  param eps = 1e-6

  in  q            [B, T, Hq, D] : host
  in  k            [B, T, Hkv, D] : host
  in  cos          [B, T, R / 2] : host
  in  sin          [B, T, R / 2] : host
  in  v?           [B, T, Hkv, D] : host
  out q_after_rope [B, T, Hq, D] : host
  out k_after_rope [B, T, Hkv, D] : host
  out v_out        [B, T, Hkv, D] : host aliases v  when present v

  slot q_norm_weight [D]        when normalization_scope is per_head
  slot k_norm_weight [D]        when normalization_scope is per_head
  slot q_norm_wide   [Hq * D]   when normalization_scope is projection
  slot k_norm_wide   [Hkv * D]  when normalization_scope is projection

  variant normalization_scope { per_head, projection }
  variant rope_layout         { half, interleaved }
  variant norm_weight_mode    { direct, offset }
  # Where the host rounds between the norm and the rotation, and what it rotates in.
  variant norm_rounding       { none, after_weight, before_weight } default none
  variant rope_dtype          { f32, host } default f32
  combinations { all except (norm_rounding is none and rope_dtype is host) }

  reference {
    let qn = match normalization_scope {
      per_head => rms_norm(f32(q), eps),
      projection => rms_norm(f32(q), eps, over Hq, over D)
    }
    let kn = match normalization_scope {
      per_head => rms_norm(f32(k), eps),
      projection => rms_norm(f32(k), eps, over Hkv, over D)
    }
    let qn = f32(cast(qn, q))  when norm_rounding is before_weight
    let kn = f32(cast(kn, k))  when norm_rounding is before_weight
    let qw = match normalization_scope {
      per_head => f32(q_norm_weight),
      projection => unflatten(f32(q_norm_wide), (Hq, D))
    }
    let kw = match normalization_scope {
      per_head => f32(k_norm_weight),
      projection => unflatten(f32(k_norm_wide), (Hkv, D))
    }
    let qn = qn * match norm_weight_mode { direct => qw, offset => qw + 1 }
    let kn = kn * match norm_weight_mode { direct => kw, offset => kw + 1 }
    let qn = f32(cast(qn, q))  when not norm_rounding is none
    let kn = f32(cast(kn, k))  when not norm_rounding is none
    let c = match rope_dtype { f32 => f32(cos), host => cast(cos, q) }
    let s = match rope_dtype { f32 => f32(sin), host => cast(sin, q) }
    let qn = cast(qn, q)       when rope_dtype is host
    let kn = cast(kn, k)       when rope_dtype is host
    let qr = match rope_layout {
      half => rope_half(qn, c, s, R),
      interleaved => rope_interleaved(qn, c, s, R)
    }
    let kr = match rope_layout {
      half => rope_half(kn, c, s, R),
      interleaved => rope_interleaved(kn, c, s, R)
    }
    point q_rotated = cast(qr, q)
    point k_rotated = cast(kr, k)
    yield q_after_rope = q_rotated
    yield k_after_rope = k_rotated
    yield v_out = v            when present v
  }

  point q observation  # how many tokens a call has
  point cos observation
  point sin observation

  require { R % 2 == 0, D % 2 == 0, R <= D, table(cos) is per_token, table(sin) is per_token }

  # Hosts of transformers norm before or after the heads move to the front.
  discover {
    form route (rope)
    dims (Hq, Hkv, D, R)
    role q_norm : rms_norm (q_norm_weight) tells norm_weight_mode tells norm_rounding gives eps
    role k_norm : rms_norm (k_norm_weight)
    called q_norm (q_norm)
    called k_norm (k_norm)
    variant normalization_scope = per_head
    variant rope_layout = half
    point q_rotated = output[0] of rope
    point k_rotated = output[1] of rope
    boundary at seat {
      q = input of q_norm,
      k = input of k_norm,
      cos = arg position_embeddings[0] : half,
      sin = arg position_embeddings[1] : half,
      q_after_rope = output[0] of rope : heads_first,
      k_after_rope = output[1] of rope : heads_first
    }
  }

  discover {
    form route (rope)
    dims (Hq, Hkv, D, R)
    role q_norm : rms_norm (q_norm_weight) tells norm_weight_mode tells norm_rounding gives eps
    role k_norm : rms_norm (k_norm_weight)
    called q_norm (q_norm)
    called k_norm (k_norm)
    variant normalization_scope = per_head
    variant rope_layout = half
    point q_rotated = output[0] of rope
    point k_rotated = output[1] of rope
    boundary at seat {
      q = input of q_norm : heads_first,
      k = input of k_norm : heads_first,
      cos = arg position_embeddings[0] : half,
      sin = arg position_embeddings[1] : half,
      q_after_rope = output[0] of rope : heads_first,
      k_after_rope = output[1] of rope : heads_first
    }
  }

  # Hosts of diffusers rotate halves or neighbours; Wan norms before it splits the heads.
  discover {
    form route (dispatched_attention)
    dims (Hq, Hkv, D, R)
    role q_norm : rms_norm (q_norm_weight) tells norm_weight_mode tells norm_rounding gives eps
    role k_norm : rms_norm (k_norm_weight)
    called q_norm (norm_q)
    called k_norm (norm_k)
    called rotary (image_rotary_emb, rotary_emb)
    variant normalization_scope = per_head
    variant rope_layout = half
    point q_rotated = arg q of dispatched_attention
    point k_rotated = arg k of dispatched_attention
    boundary at seat {
      q = input of q_norm : heads_first,
      k = input of k_norm : heads_first,
      cos = arg rotary[0] : half,
      sin = arg rotary[1] : half,
      q_after_rope = arg q of dispatched_attention,
      k_after_rope = arg k of dispatched_attention
    }
  }

  discover {
    form route (dispatched_attention)
    dims (Hq, Hkv, D, R)
    role q_norm : rms_norm (q_norm_weight) tells norm_weight_mode tells norm_rounding gives eps
    role k_norm : rms_norm (k_norm_weight)
    called q_norm (norm_q)
    called k_norm (norm_k)
    called rotary (image_rotary_emb, rotary_emb)
    variant normalization_scope = per_head
    variant rope_layout = interleaved
    point q_rotated = arg q of dispatched_attention
    point k_rotated = arg k of dispatched_attention
    boundary at seat {
      q = input of q_norm,
      k = input of k_norm,
      cos = arg rotary[0] : every_other,
      sin = arg rotary[1] : every_other,
      q_after_rope = arg q of dispatched_attention,
      k_after_rope = arg k of dispatched_attention
    }
  }

  discover {
    form route (dispatched_attention)
    dims (Hq, Hkv, D, R)
    role q_norm : rms_norm (q_norm_wide) tells norm_weight_mode tells norm_rounding gives eps
    role k_norm : rms_norm (k_norm_wide)
    role to_q   : linear
    role to_k   : linear
    called to_q (to_q)
    called to_k (to_k)
    called q_norm (norm_q)
    called k_norm (norm_k)
    called rotary (image_rotary_emb, rotary_emb)
    variant normalization_scope = projection
    variant rope_layout = interleaved
    point q_rotated = arg q of dispatched_attention
    point k_rotated = arg k of dispatched_attention
    boundary at seat {
      q = output of to_q : flat_heads,
      k = output of to_k : flat_heads,
      cos = arg rotary[0] : every_other,
      sin = arg rotary[1] : every_other,
      q_after_rope = arg q of dispatched_attention,
      k_after_rope = arg k of dispatched_attention
    }
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, unfused_chain, vendor) }
  evidence """
  Cosmos and audio hosts norm each head, Wan the whole projection before it is split. Qwen
  rounds between norm and weight and rotates in the host dtype. Writing the result into a cache is
  another region, also where one kernel does both.
  """
}
