frt 1

binding flux {
  """Flux image transformers as diffusers builds them.

  Joint blocks hold two streams, text and image, that meet in one attention; single blocks hold
  one. Queries and keys of both streams are normed apart and joined before the rotation, so the
  region of norms and rotation exists in the single blocks only.
  """
  status draft
  host diffusers ">=0.35,<0.43" class FluxTransformer2DModel

  dims {
    H = config.num_attention_heads,
    Dh = config.attention_head_dim,
    D = H * Dh,
    L = config.num_layers,
    S = config.num_single_layers
  }

  each i in 0..L {
    seat norm1 : adaln_producer version 1 at transformer_blocks.{i}.norm1 {
      dims { D = D, C = D }
      variant norm = layer
      variant style = scale_shift_gate
      variant style_order = shift_first
      variant cond_activation = silu
      variant epilogue = none
      slot style_w = part(linear.weight, 0, 2) : out_in
      slot style_b = part(linear.bias, 0, 2)
      point cond_in = arg emb
      point x_in    = input
      boundary at transformer_blocks.{i}.norm1 {
        x = input,
        cond = arg emb,
        y = output[0],
        gate = output[1]
      }
      expect class (AdaLayerNormZero)
      expect returns tuple
    }

    seat norm1_context : adaln_producer version 1 at transformer_blocks.{i}.norm1_context {
      dims { D = D, C = D }
      variant norm = layer
      variant style = scale_shift_gate
      variant style_order = shift_first
      variant cond_activation = silu
      variant epilogue = none
      slot style_w = part(linear.weight, 0, 2) : out_in
      slot style_b = part(linear.bias, 0, 2)
      point cond_in = arg emb
      point x_in    = input
      boundary at transformer_blocks.{i}.norm1_context {
        x = input,
        cond = arg emb,
        y = output[0],
        gate = output[1]
      }
      expect class (AdaLayerNormZero)
      expect returns tuple
    }

    seat qkv : qkv_pack version 1 at transformer_blocks.{i}.attn {
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

    seat add_qkv : qkv_pack version 1 at transformer_blocks.{i}.attn {
      dims { K = D, N[0] = D, N[1] = D, N[2] = D }
      variant bias = add
      siblings prove (shared_input, call_order) {
        w[0] = add_q_proj.weight : out_in,
        w[1] = add_k_proj.weight : out_in,
        w[2] = add_v_proj.weight : out_in,
        b[0] = add_q_proj.bias,
        b[1] = add_k_proj.bias,
        b[2] = add_v_proj.bias
      }
      point x_in = input of add_q_proj
    }

    seat attention : attention_core version 1 at transformer_blocks.{i}.attn {
      dims { H = H, Hkv = H, D = Dh }
      form route (dispatched_attention)
      variant scaling = head_dim
      point q_in = arg q of dispatched_attention
      point k_in = arg k of dispatched_attention
      point v_in = arg v of dispatched_attention
      boundary at transformer_blocks.{i}.attn {
        q = arg q of dispatched_attention : tokens_first,
        k = arg k of dispatched_attention : tokens_first,
        v = arg v of dispatched_attention : tokens_first,
        mask = arg mask of dispatched_attention,
        y = output of dispatched_attention
      }
    }

    seat o : linear_proj version 1 at transformer_blocks.{i}.attn.to_out.0 {
      dims { K = D, N = D }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at transformer_blocks.{i}.attn.to_out.0 { x = input, y = output }
    }

    seat add_o : linear_proj version 1 at transformer_blocks.{i}.attn.to_add_out {
      dims { K = D, N = D }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at transformer_blocks.{i}.attn.to_add_out { x = input, y = output }
    }

    seat ff : vision_ffn.mlp version 3 at transformer_blocks.{i}.ff {
      dims { D = D, F = 4 * D }
      variant activation = gelu_tanh
      variant norm_affine = identity
      variant bias = add
      slot w_fc1 = net.0.proj.weight : out_in
      slot b_fc1 = net.0.proj.bias
      slot w_fc2 = net.2.weight : out_in
      slot b_fc2 = net.2.bias
      point x_after_norm     = input
      point hidden_after_act = input of net.2
      boundary none "this host modulates the norm's output and gates the FFN's"
      expect class (FeedForward)
      expect returns tensor
    }

    seat ff_context : vision_ffn.mlp version 3 at transformer_blocks.{i}.ff_context {
      dims { D = D, F = 4 * D }
      variant activation = gelu_tanh
      variant norm_affine = identity
      variant bias = add
      slot w_fc1 = net.0.proj.weight : out_in
      slot b_fc1 = net.0.proj.bias
      slot w_fc2 = net.2.weight : out_in
      slot b_fc2 = net.2.bias
      point x_after_norm     = input
      point hidden_after_act = input of net.2
      boundary none "this host modulates the norm's output and gates the FFN's"
      expect class (FeedForward)
      expect returns tensor
    }
  }

  each j in 0..S {
    seat single_norm : adaln_producer version 1 at single_transformer_blocks.{j}.norm {
      dims { D = D, C = D }
      variant norm = layer
      variant style = scale_shift_gate
      variant style_order = shift_first
      variant cond_activation = silu
      variant epilogue = none
      slot style_w = linear.weight : out_in
      slot style_b = linear.bias
      point cond_in = arg emb
      point x_in    = input
      boundary at single_transformer_blocks.{j}.norm {
        x = input,
        cond = arg emb,
        y = output[0],
        gate = output[1]
      }
      expect class (AdaLayerNormZeroSingle)
      expect returns tuple
    }

    seat single_qkv : qkv_pack version 1 at single_transformer_blocks.{j}.attn {
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

    seat single_qk : qk_norm_rope version 1 at single_transformer_blocks.{j}.attn {
      form route (dispatched_attention)
      dims { Hq = H, Hkv = H, D = Dh, R = Dh }
      variant normalization_scope = per_head
      variant rope_layout = interleaved
      variant norm_weight_mode = direct
      variant norm_rounding = after_weight
      slot q_norm_weight = norm_q.weight
      slot k_norm_weight = norm_k.weight
      point q_rotated = arg q of dispatched_attention
      point k_rotated = arg k of dispatched_attention
      boundary at single_transformer_blocks.{j}.attn {
        q = input of norm_q,
        k = input of norm_k,
        v = output of to_v : flat_heads,
        cos = arg image_rotary_emb[0] : every_other,
        sin = arg image_rotary_emb[1] : every_other,
        q_after_rope = arg q of dispatched_attention,
        k_after_rope = arg k of dispatched_attention,
        v_out = arg v of dispatched_attention
      }
      expect class (RMSNorm) of (norm_q, norm_k)
    }

    seat single_attention : attention_core version 1 at single_transformer_blocks.{j}.attn {
      dims { H = H, Hkv = H, D = Dh }
      form route (dispatched_attention)
      variant scaling = head_dim
      point q_in = arg q of dispatched_attention
      point k_in = arg k of dispatched_attention
      point v_in = arg v of dispatched_attention
      boundary at single_transformer_blocks.{j}.attn {
        q = arg q of dispatched_attention : tokens_first,
        k = arg k of dispatched_attention : tokens_first,
        v = arg v of dispatched_attention : tokens_first,
        mask = arg mask of dispatched_attention,
        y = output of dispatched_attention
      }
    }

    seat single_up : linear_proj version 1 at single_transformer_blocks.{j}.proj_mlp {
      dims { K = D, N = 4 * D }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at single_transformer_blocks.{j}.proj_mlp { x = input, y = output }
    }

    seat single_out : linear_proj version 1 at single_transformer_blocks.{j}.proj_out {
      dims { K = 5 * D, N = D }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at single_transformer_blocks.{j}.proj_out { x = input, y = output }
    }
  }

  seat norm_out : adaln_producer version 1 at norm_out {
    dims { D = D, C = D }
    variant norm = layer
    variant style = scale_shift
    variant style_order = scale_first
    variant cond_activation = silu
    variant epilogue = none
    slot pair_w = linear.weight : out_in
    slot pair_b = linear.bias
    point cond_in = arg conditioning_embedding
    point x_in    = input
    boundary at norm_out { x = input, cond = arg conditioning_embedding, y = output }
    expect class (AdaLayerNormContinuous)
    expect returns tensor
  }

  seat out : linear_proj version 1 at proj_out {
    dims { K = D }
    variant bias = add
    variant epilogue = none
    slot w = weight : out_in
    slot b = bias
    point x_in = input
    boundary at proj_out { x = input, y = output }
  }
}
