frt 1

binding cosmos {
  """Cosmos video transformers as diffusers builds them.

  The products have no biases, the gelu is the exact one, and each adaptive norm projects its
  conditioning through a small middle width. Before diffusers 0.37 the attention is computed
  inside the processor, so nothing could be routed.
  """
  status draft
  host diffusers ">=0.37,<0.43" class CosmosTransformer3DModel

  dims {
    H = config.num_attention_heads,
    Dh = config.attention_head_dim,
    D = H * Dh,
    F = model.transformer_blocks[0].ff.net[2].in_features,
    R = config.adaln_lora_dim,
    L = config.num_layers
  }

  each i in 0..L {
    seat norm1 : adaln_producer version 2 at transformer_blocks.{i}.norm1 {
      dims { D = D, C = D, R = R }
      variant projection = low_rank
      variant norm = layer
      variant style_order = shift_first
      variant cond_activation = silu
      slot style_down = linear_1.weight : out_in
      slot style_up   = linear_2.weight : out_in
      point cond_in = arg embedded_timestep
      point x_in    = input
      boundary at transformer_blocks.{i}.norm1 {
        x = input,
        cond = arg embedded_timestep,
        style_term = arg temb,
        y = output[0],
        gate = output[1] : one_token
      }
      expect class (CosmosAdaLayerNormZero)
      expect bias none of (linear_1, linear_2)
      expect returns tuple
    }

    seat norm2 : adaln_producer version 2 at transformer_blocks.{i}.norm2 {
      dims { D = D, C = D, R = R }
      variant projection = low_rank
      variant norm = layer
      variant style_order = shift_first
      variant cond_activation = silu
      slot style_down = linear_1.weight : out_in
      slot style_up   = linear_2.weight : out_in
      point cond_in = arg embedded_timestep
      point x_in    = input
      boundary at transformer_blocks.{i}.norm2 {
        x = input,
        cond = arg embedded_timestep,
        style_term = arg temb,
        y = output[0],
        gate = output[1] : one_token
      }
      expect class (CosmosAdaLayerNormZero)
      expect bias none of (linear_1, linear_2)
      expect returns tuple
    }

    seat norm3 : adaln_producer version 2 at transformer_blocks.{i}.norm3 {
      dims { D = D, C = D, R = R }
      variant projection = low_rank
      variant norm = layer
      variant style_order = shift_first
      variant cond_activation = silu
      slot style_down = linear_1.weight : out_in
      slot style_up   = linear_2.weight : out_in
      point cond_in = arg embedded_timestep
      point x_in    = input
      boundary at transformer_blocks.{i}.norm3 {
        x = input,
        cond = arg embedded_timestep,
        style_term = arg temb,
        y = output[0],
        gate = output[1] : one_token
      }
      expect class (CosmosAdaLayerNormZero)
      expect bias none of (linear_1, linear_2)
      expect returns tuple
    }

    seat qkv : qkv_pack version 1 at transformer_blocks.{i}.attn1 {
      dims { K = D, N[0] = D, N[1] = D, N[2] = D }
      variant bias = none
      siblings prove (shared_input, call_order) {
        w[0] = to_q.weight : out_in,
        w[1] = to_k.weight : out_in,
        w[2] = to_v.weight : out_in
      }
      point x_in = input of to_q
      expect bias none of (to_q, to_k, to_v)
    }

    seat qk : qk_norm_rope version 1 at transformer_blocks.{i}.attn1 {
      form route (dispatched_attention)
      dims { Hq = H, Hkv = H, D = Dh, R = Dh }
      variant normalization_scope = per_head
      variant rope_layout = half
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      param eps = model.transformer_blocks[i].attn1.norm_q.eps
      slot q_norm_weight = norm_q.weight
      slot k_norm_weight = norm_k.weight
      point q_rotated = arg q of dispatched_attention
      point k_rotated = arg k of dispatched_attention
      boundary at transformer_blocks.{i}.attn1 {
        q = input of norm_q : heads_first,
        k = input of norm_k : heads_first,
        v = output of to_v : flat_heads,
        cos = arg image_rotary_emb[0] : half,
        sin = arg image_rotary_emb[1] : half,
        q_after_rope = arg q of dispatched_attention,
        k_after_rope = arg k of dispatched_attention,
        v_out = arg v of dispatched_attention
      }
      expect class (RMSNorm) of (norm_q, norm_k)
    }

    seat attention : attention_core version 1 at transformer_blocks.{i}.attn1 {
      dims { H = H, Hkv = H, D = Dh }
      form route (dispatched_attention)
      variant scaling = head_dim
      point q_in = arg q of dispatched_attention
      point k_in = arg k of dispatched_attention
      point v_in = arg v of dispatched_attention
      boundary at transformer_blocks.{i}.attn1 {
        q = arg q of dispatched_attention : tokens_first,
        k = arg k of dispatched_attention : tokens_first,
        v = arg v of dispatched_attention : tokens_first,
        mask = arg mask of dispatched_attention,
        y = output of dispatched_attention
      }
    }

    seat o : linear_proj version 1 at transformer_blocks.{i}.attn1.to_out.0 {
      dims { K = D, N = D }
      variant bias = none
      variant epilogue = none
      slot w = weight : out_in
      point x_in = input
      boundary at transformer_blocks.{i}.attn1.to_out.0 { x = input, y = output }
    }

    seat cross_q : linear_proj version 1 at transformer_blocks.{i}.attn2.to_q {
      dims { K = D, N = D }
      variant bias = none
      variant epilogue = none
      slot w = weight : out_in
      point x_in = input
      boundary at transformer_blocks.{i}.attn2.to_q { x = input, y = output }
    }

    seat cross_k : cadence_static version 1 at transformer_blocks.{i}.attn2.to_k {
      form update (cadence = prompt)
      dims { N = D }
      point held = output
      boundary at transformer_blocks.{i}.attn2.to_k { x = input, y = output }
      expect returns tensor
    }

    seat cross_v : cadence_static version 1 at transformer_blocks.{i}.attn2.to_v {
      form update (cadence = prompt)
      dims { N = D }
      point held = output
      boundary at transformer_blocks.{i}.attn2.to_v { x = input, y = output }
      expect returns tensor
    }

    seat cross_attention : attention_core version 1 at transformer_blocks.{i}.attn2 {
      dims { H = H, Hkv = H, D = Dh }
      form route (dispatched_attention)
      variant scaling = head_dim
      point q_in = arg q of dispatched_attention
      point k_in = arg k of dispatched_attention
      point v_in = arg v of dispatched_attention
      boundary at transformer_blocks.{i}.attn2 {
        q = arg q of dispatched_attention : tokens_first,
        k = arg k of dispatched_attention : tokens_first,
        v = arg v of dispatched_attention : tokens_first,
        mask = arg mask of dispatched_attention,
        y = output of dispatched_attention
      }
    }

    seat cross_o : linear_proj version 1 at transformer_blocks.{i}.attn2.to_out.0 {
      dims { K = D, N = D }
      variant bias = none
      variant epilogue = none
      slot w = weight : out_in
      point x_in = input
      boundary at transformer_blocks.{i}.attn2.to_out.0 { x = input, y = output }
    }

    seat ffn : vision_ffn.mlp version 3 at transformer_blocks.{i}.ff {
      dims { D = D, F = F }
      variant activation = gelu_erf
      variant norm_affine = identity
      variant bias = none
      slot w_fc1 = net.0.proj.weight : out_in
      slot w_fc2 = net.2.weight : out_in
      point x_after_norm     = input
      point hidden_after_act = input of net.2
      boundary none "this host modulates the norm's output and gates the FFN's"
      expect class (FeedForward)
      expect bias none of (net.0.proj, net.2)
      expect returns tensor
    }
  }
}
