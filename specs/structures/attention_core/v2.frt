frt 1

structure attention_core version 2 {
  """Scaled dot-product attention: softmax in float32, queries grouped over key/value heads.

  Version 1 with what torch's own attention is handed: a mask of truths, where true may be
  seen, and no mask at all where the model means a causal one.
  """
  status draft

  dim B, H, Hkv, Sq, Skv, D
  param scale = 1.0

  in  q     [B, H, Sq, D] : host
  in  k     [B, Hkv, Skv, D] : host
  in  v     [B, Hkv, Skv, D] : host
  in  seen? [B, 1, Sq, Skv] : bool
  out y     [B, Sq, H, D] : host

  # `given` takes the seat's own scale; most hosts use the head's width.
  variant scaling  { head_dim, given }
  # What a call without a mask means. The last query meets the last key.
  variant unmasked { all, causal }

  reference {
    point q_in = q
    point k_in = k
    point v_in = v
    let kh = f32(repeat(k_in, H / Hkv, over Hkv))
    let vh = f32(repeat(v_in, H / Hkv, over Hkv))
    let s = f32(q_in) @ transpose(kh, 2, 3)
    let s = match scaling { head_dim => s * D ** -0.5, given => s * scale }
    let c = match unmasked { all => s, causal => causal_mask(s) }
    let m = s + log(f32(seen))  when present seen otherwise c
    let o = softmax(m, over Skv) @ vh
    yield y = cast(transpose(o, 1, 2), q)
  }

  require { H % Hkv == 0 }
  # A fused kernel has these widths of a head.
  qualify { D in (64, 96, 128, 256) }

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
      seen = arg mask of attention,
      y = output of attention
    }
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, vendor) }
}
