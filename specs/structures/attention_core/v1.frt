frt 1

structure attention_core version 1 {
  """Scaled dot-product attention: softmax in float32, queries grouped over key/value heads.

  The mask is the host's additive one. Heads move behind the tokens at the end, where an
  output projection wants them.
  """
  status draft

  dim B, H, Hkv, Sq, Skv, D
  param scale = 1.0

  in  q     [B, H, Sq, D] : host
  in  k     [B, Hkv, Skv, D] : host
  in  v     [B, Hkv, Skv, D] : host
  in  mask? [B, 1, Sq, Skv] : host
  out y     [B, Sq, H, D] : host

  point k content  # a prefix that is packed must not move
  point mask content  when present mask

  # `given` takes the seat's own scale; most hosts use the head's width.
  variant scaling { head_dim, given }

  reference {
    point q_in = q
    point k_in = k
    point v_in = v
    let kh = f32(repeat(k_in, H / Hkv, over Hkv))
    let vh = f32(repeat(v_in, H / Hkv, over Hkv))
    let s = f32(q_in) @ transpose(kh, 2, 3)
    let s = match scaling { head_dim => s * D ** -0.5, given => s * scale }
    let s = s + f32(mask)  when present mask
    let o = softmax(s, over Skv) @ vh
    yield y = cast(transpose(o, 1, 2), q)
  }

  require { H % Hkv == 0 }
  # A fused kernel has these widths of a head.
  qualify { D in (64, 96, 128, 256) }
  # A mask is resolved by packing the keys that it leaves.
  require for packed_kv { runs(mask) <= 1, prefix_drift(k) <= 0.001 }

  discover {
    form route (attention)
    dims (H, Hkv, D)
    point q_in = arg q of attention
    point k_in = arg k of attention
    point v_in = arg v of attention
    boundary at seat {
      q = arg q of attention,
      k = arg k of attention,
      v = arg v of attention,
      mask = arg mask of attention,
      y = output of attention
    }
  }

  discover {
    form route (dispatched_attention)
    dims (H, Hkv, D)
    point q_in = arg q of dispatched_attention
    point k_in = arg k of dispatched_attention
    point v_in = arg v of dispatched_attention
    boundary at seat {
      q = arg q of dispatched_attention : tokens_first,
      k = arg k of dispatched_attention : tokens_first,
      v = arg v of dispatched_attention : tokens_first,
      mask = arg mask of dispatched_attention,
      y = output of dispatched_attention
    }
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, vendor) }
  evidence """
  Several segments stay with the host. Measured by flash-rt: 11.7 us against 23.9 us at the shapes
  of pi05.
  """
}
