frt 1

binding wan {
  """Wan video transformers (2.1 and 2.2) as diffusers builds them.

  A block computes its modulation inline. Where the conditioning has one row a token (Wan 2.2
  TI2V) the whole block is a seat; the parts of a block are seats on every Wan. Keys and values of
  the cross-attention depend on the prompt alone.
  """
  status draft
  host diffusers ">=0.35,<0.43" class WanTransformer3DModel

  dims {
    H = config.num_attention_heads,
    Dh = config.attention_head_dim,
    D = H * Dh,
    F = config.ffn_dim,
    L = config.num_layers
  }

  each i in 0..L {
    seat block : modnorm_qkv_chain version 3 at blocks.{i} {
      form block
      dims { D = D, F = F, Nq = D, Nk = D, Nv = D }
      variant modulation = per_token_table
      variant fanout = qkv
      param eps = config.eps
      slot steps  = squeeze(scale_shift_table) : in_out
      slot w_q    = attn1.to_q.weight : out_in
      slot b_q    = attn1.to_q.bias
      slot w_k    = attn1.to_k.weight : out_in
      slot b_k    = attn1.to_k.bias
      slot w_v    = attn1.to_v.weight : out_in
      slot b_v    = attn1.to_v.bias
      slot w_o    = attn1.to_out.0.weight : out_in
      slot b_o    = attn1.to_out.0.bias
      slot w_up   = ffn.net.0.proj.weight : out_in
      slot b_up   = ffn.net.0.proj.bias
      slot w_down = ffn.net.2.weight : out_in
      slot b_down = ffn.net.2.bias
      point attn_in = input of attn1
      point o_in    = input of attn1.to_out.0
      point ffn_in  = input of ffn
      point ffn_hid = input of ffn.net.2
      boundary at blocks.{i} { x = input, table = arg temb, y = output }
      part self_attention at attn1 with (rotary_emb) {
        q = output of attn1.to_q,
        k = output of attn1.to_k,
        v = output of attn1.to_v,
        result = input of attn1.to_out.0
      }
      part cross_attention at (norm2, attn2) with (encoder_hidden_states)
      expect class (WanTransformerBlock)
      expect class (FP32LayerNorm) of (norm1, norm3)
      expect returns tensor
      expect call positional
    }

    seat qkv : qkv_pack version 1 at blocks.{i}.attn1 {
      dims { K = D, N[0] = D, N[1] = D, N[2] = D }
      variant bias = add
      siblings prove (shared_input, call_order) {
        w[0] = to_q.weight : out_in,
        w[1] = to_k.weight : out_in,
        w[2] = to_v.weight : out_in,
        b[0] = to_q.bias,
        b[1] = to_k.bias,
        b[2] = to_v.bias
      }
      point x_in = input of to_q
    }

    seat qk : qk_norm_rope version 1 at blocks.{i}.attn1 {
      form route (dispatched_attention)
      dims { Hq = H, Hkv = H, D = Dh, R = Dh }
      variant normalization_scope = projection
      variant rope_layout = interleaved
      variant norm_weight_mode = direct
      variant norm_rounding = after_weight
      param eps = config.eps
      slot q_norm_wide = norm_q.weight
      slot k_norm_wide = norm_k.weight
      point q_rotated = arg q of dispatched_attention
      point k_rotated = arg k of dispatched_attention
      boundary at blocks.{i}.attn1 {
        q = output of to_q : flat_heads,
        k = output of to_k : flat_heads,
        v = output of to_v : flat_heads,
        cos = arg rotary_emb[0] : every_other,
        sin = arg rotary_emb[1] : every_other,
        q_after_rope = arg q of dispatched_attention,
        k_after_rope = arg k of dispatched_attention,
        v_out = arg v of dispatched_attention
      }
      expect class (RMSNorm) of (norm_q, norm_k)
    }

    seat attention : attention_core version 1 at blocks.{i}.attn1 {
      dims { H = H, Hkv = H, D = Dh }
      form route (dispatched_attention)
      variant scaling = head_dim
      point q_in = arg q of dispatched_attention
      point k_in = arg k of dispatched_attention
      point v_in = arg v of dispatched_attention
      boundary at blocks.{i}.attn1 {
        q = arg q of dispatched_attention : tokens_first,
        k = arg k of dispatched_attention : tokens_first,
        v = arg v of dispatched_attention : tokens_first,
        mask = arg mask of dispatched_attention,
        y = output of dispatched_attention
      }
    }

    seat o : linear_proj version 1 at blocks.{i}.attn1.to_out.0 {
      dims { K = D, N = D }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at blocks.{i}.attn1.to_out.0 { x = input, y = output }
    }

    seat norm2 : norm_fused version 1 at blocks.{i}.norm2 when config.cross_attn_norm {
      dims { D = D }
      param eps = config.eps
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at blocks.{i}.norm2 { x = input, y = output }
      expect class (FP32LayerNorm)
    }

    seat cross_q : linear_proj version 1 at blocks.{i}.attn2.to_q {
      dims { K = D, N = D }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at blocks.{i}.attn2.to_q { x = input, y = output }
    }

    seat cross_k : cadence_static version 1 at blocks.{i}.attn2.to_k {
      form update (cadence = prompt)
      dims { N = D }
      point held = output
      boundary at blocks.{i}.attn2.to_k { x = input, y = output }
      expect returns tensor
    }

    seat cross_v : cadence_static version 1 at blocks.{i}.attn2.to_v {
      form update (cadence = prompt)
      dims { N = D }
      point held = output
      boundary at blocks.{i}.attn2.to_v { x = input, y = output }
      expect returns tensor
    }

    seat cross_attention : attention_core version 1 at blocks.{i}.attn2 when (
      config.added_kv_proj_dim ?? none
    ) == none {
      dims { H = H, Hkv = H, D = Dh }
      form route (dispatched_attention)
      variant scaling = head_dim
      point q_in = arg q of dispatched_attention
      point k_in = arg k of dispatched_attention
      point v_in = arg v of dispatched_attention
      boundary at blocks.{i}.attn2 {
        q = arg q of dispatched_attention : tokens_first,
        k = arg k of dispatched_attention : tokens_first,
        v = arg v of dispatched_attention : tokens_first,
        mask = arg mask of dispatched_attention,
        y = output of dispatched_attention
      }
    }

    seat cross_o : linear_proj version 1 at blocks.{i}.attn2.to_out.0 {
      dims { K = D, N = D }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at blocks.{i}.attn2.to_out.0 { x = input, y = output }
    }

    seat ffn : vision_ffn.mlp version 3 at blocks.{i}.ffn {
      dims { D = D, F = F }
      variant activation = gelu_tanh
      variant norm_affine = identity
      variant bias = add
      param eps = config.eps
      slot w_fc1 = net.0.proj.weight : out_in
      slot b_fc1 = net.0.proj.bias
      slot w_fc2 = net.2.weight : out_in
      slot b_fc2 = net.2.bias
      point x_after_norm     = input
      point hidden_after_act = input of net.2
      boundary none "this host modulates the norm's output and gates the FFN's"
      expect class (FeedForward)
      expect bias all of (net.0.proj, net.2)
      expect returns tensor
    }
  }
}
