frt 1

structure qkv_rope version 2 {
  """Rotary embedding of the queries and keys that one packed projection gives.

  Version 1 from behind the split. A host adds the bias inside its product and splits the result
  into views, so the packed value before the bias is nowhere to be had; values stay where they
  are. The tokens have no batch axis, as in towers that work on rows of patches.
  """
  status draft

  dim T, Hq, Hkv, D

  in  q            [T, Hq, D] : host
  in  k            [T, Hkv, D] : host
  in  cos          [T, D / 2 | D] : host
  in  sin          [T, D / 2 | D] : host
  out q_after_rope [T, Hq, D] : host
  out k_after_rope [T, Hkv, D] : host

  reference {
    point q_rotated = cast(rope_half(f32(q), f32(cos), f32(sin)), q)
    point k_rotated = cast(rope_half(f32(k), f32(cos), f32(sin)), k)
    yield q_after_rope = q_rotated
    yield k_after_rope = k_rotated
  }

  # Tables have a row for each token by their shape.
  require { D % 2 == 0, D <= 256 }

  discover {
    form route (apply_rotary_pos_emb_vision, via = global, args = (q, k, cos, sin))
    dims (Hq, Hkv, D)
    point q_rotated = output[0] of apply_rotary_pos_emb_vision
    point k_rotated = output[1] of apply_rotary_pos_emb_vision
    boundary at seat {
      q = arg q of apply_rotary_pos_emb_vision,
      k = arg k of apply_rotary_pos_emb_vision,
      cos = arg cos of apply_rotary_pos_emb_vision,
      sin = arg sin of apply_rotary_pos_emb_vision,
      q_after_rope = output[0] of apply_rotary_pos_emb_vision,
      k_after_rope = output[1] of apply_rotary_pos_emb_vision
    }
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, unfused_chain) }
  evidence """
  The vision tower of Qwen3-VL rotates so, in float32 whatever the model's dtype. A kernel that
  adds the bias too begins one pass earlier, and needs the product without its bias: version 1.
  """
}
