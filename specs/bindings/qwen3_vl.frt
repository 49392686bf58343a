frt 1

binding qwen3_vl {
  """Qwen3-VL as transformers builds it: the vision tower, its mergers and the text decoder.

  The tower works on rows of patches without a batch axis, so its patch projection is one
  product.
  """
  status draft
  host transformers ">=5.13,<6" class Qwen3VLForConditionalGeneration

  dims {
    D = config.text_config.hidden_size,
    F = config.text_config.intermediate_size,
    L = config.text_config.num_hidden_layers,
    Dh = config.text_config.head_dim ?? config.text_config.hidden_size / config.text_config.num_attention_heads,
    Hq = config.text_config.num_attention_heads,
    Hkv = config.text_config.num_key_value_heads,
    Dv = config.vision_config.hidden_size,
    Fv = config.vision_config.intermediate_size,
    Lv = config.vision_config.depth,
    Hv = config.vision_config.num_heads,
    Ov = config.vision_config.out_hidden_size,
    Mv = config.vision_config.hidden_size * config.vision_config.spatial_merge_size * config.vision_config.spatial_merge_size,
    Kv = config.vision_config.in_channels * config.vision_config.temporal_patch_size * config.vision_config.patch_size * config.vision_config.patch_size
  }

  seat patch : patch_projection version 1 at model.visual.patch_embed {
    dims { K = Kv, N = Dv }
    variant bias = add
    slot w = flat(proj.weight) : out_in
    slot b = proj.bias
    point x_in = input
    boundary at model.visual.patch_embed { x = input, y = output }
    expect class (Qwen3VLVisionPatchEmbed)
    expect class (Conv3d) of (proj)
    expect returns tensor
  }

  each i in 0..Lv {
    seat vision_norm1 : norm_fused version 1 at model.visual.blocks.{i}.norm1 {
      dims { D = Dv }
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at model.visual.blocks.{i}.norm1 { x = input, y = output }
      expect class (LayerNorm)
    }

    seat vision_qkv : linear_proj version 1 at model.visual.blocks.{i}.attn.qkv {
      dims { K = Dv, N = 3 * Dv }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at model.visual.blocks.{i}.attn.qkv { x = input, y = output }
      expect class (Linear)
    }

    seat vision_rope : qkv_rope version 2 at model.visual.blocks.{i}.attn {
      dims { Hq = Hv, Hkv = Hv, D = Dv / Hv }
      form route (apply_rotary_pos_emb_vision, via = global, args = (q, k, cos, sin))
      point q_rotated = output[0] of apply_rotary_pos_emb_vision
      point k_rotated = output[1] of apply_rotary_pos_emb_vision
      boundary at model.visual.blocks.{i}.attn {
        q = arg q of apply_rotary_pos_emb_vision,
        k = arg k of apply_rotary_pos_emb_vision,
        cos = arg cos of apply_rotary_pos_emb_vision,
        sin = arg sin of apply_rotary_pos_emb_vision,
        q_after_rope = output[0] of apply_rotary_pos_emb_vision,
        k_after_rope = output[1] of apply_rotary_pos_emb_vision
      }
    }

    seat vision_attention : attention_core version 1 at model.visual.blocks.{i}.attn {
      dims { H = Hv, Hkv = Hv, D = Dv / Hv }
      form route (attention)
      variant scaling = head_dim
      point q_in = arg q of attention
      point k_in = arg k of attention
      point v_in = arg v of attention
      boundary at model.visual.blocks.{i}.attn {
        q = arg q of attention,
        k = arg k of attention,
        v = arg v of attention,
        mask = arg mask of attention,
        y = output of attention
      }
    }

    seat vision_o : linear_proj version 1 at model.visual.blocks.{i}.attn.proj {
      dims { K = Dv, N = Dv }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at model.visual.blocks.{i}.attn.proj { x = input, y = output }
      expect class (Linear)
    }

    seat vision_norm2 : norm_fused version 1 at model.visual.blocks.{i}.norm2 {
      dims { D = Dv }
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at model.visual.blocks.{i}.norm2 { x = input, y = output }
      expect class (LayerNorm)
    }

    seat vision_mlp : vision_ffn.mlp version 3 at model.visual.blocks.{i}.mlp {
      dims { D = Dv, F = Fv }
      variant activation = match config.vision_config.hidden_act {
        "gelu_pytorch_tanh" => gelu_tanh,
        "gelu" => gelu_erf,
        else => refuse
      }
      variant norm_affine = learned
      variant bias = add
      slot w_fc1 = linear_fc1.weight : out_in
      slot b_fc1 = linear_fc1.bias
      slot w_fc2 = linear_fc2.weight : out_in
      slot b_fc2 = linear_fc2.bias
      point x_after_norm     = input
      point hidden_after_act = input of linear_fc2
      boundary at model.visual.blocks.{i} {
        x = input of norm2,
        y = output,
        slot w_norm = norm2.weight,
        slot b_norm = norm2.bias
      }
      expect class (Qwen3VLVisionMLP)
      expect bias all of (linear_fc1, linear_fc2)
      expect returns tensor
    }
  }

  seat merger_norm : norm_fused version 1 at model.visual.merger.norm {
    dims { D = Dv }
    slot w = weight
    slot b = bias
    point x_in = input
    boundary at model.visual.merger.norm { x = input, y = output }
    expect class (LayerNorm)
  }

  seat merger_fc1 : linear_proj version 1 at model.visual.merger.linear_fc1 {
    dims { K = Mv, N = Mv }
    variant bias = add
    variant epilogue = none
    slot w = weight : out_in
    slot b = bias
    point x_in = input
    boundary at model.visual.merger.linear_fc1 { x = input, y = output }
    expect class (Linear)
  }

  seat merger_fc2 : linear_proj version 1 at model.visual.merger.linear_fc2 {
    dims { K = Mv, N = Ov }
    variant bias = add
    variant epilogue = none
    slot w = weight : out_in
    slot b = bias
    point x_in = input
    boundary at model.visual.merger.linear_fc2 { x = input, y = output }
    expect class (Linear)
  }

  each i in 0..L {
    seat input_norm : norm_fused version 2 at model.language_model.layers.{i}.input_layernorm {
      dims { D = D }
      variant norm = rms
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      param eps = config.text_config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at model.language_model.layers.{i}.input_layernorm { x = input, y = output }
    }

    seat qkv : qkv_pack version 1 at model.language_model.layers.{i}.self_attn {
      dims { K = D, N[0] = Hq * Dh, N[1] = Hkv * Dh, N[2] = Hkv * Dh }
      variant bias = match config.text_config.attention_bias { false => none, true => add }
      siblings prove (shared_input, call_order) {
        w[0] = q_proj.weight : out_in,
        w[1] = k_proj.weight : out_in,
        w[2] = v_proj.weight : out_in,
        b[0] = q_proj.bias,
        b[1] = k_proj.bias,
        b[2] = v_proj.bias
      }
      point x_in = input of q_proj
    }

    seat rope : qk_norm_rope version 1 at model.language_model.layers.{i}.self_attn {
      dims { Hq = Hq, Hkv = Hkv, D = Dh, R = Dh }
      form route (rope)
      variant normalization_scope = per_head
      variant rope_layout = half
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      variant rope_dtype = host
      param eps = config.text_config.rms_norm_eps
      slot q_norm_weight = q_norm.weight
      slot k_norm_weight = k_norm.weight
      point q_rotated = output[0] of rope
      point k_rotated = output[1] of rope
      boundary at model.language_model.layers.{i}.self_attn {
        q = input of q_norm,
        k = input of k_norm,
        cos = arg position_embeddings[0] : half,
        sin = arg position_embeddings[1] : half,
        q_after_rope = output[0] of rope : heads_first,
        k_after_rope = output[1] of rope : heads_first
      }
    }

    seat attention : attention_core version 2 at model.language_model.layers.{i}.self_attn when config.text_config._attn_implementation == "sdpa" {
      dims { H = Hq, Hkv = Hkv, D = Dh }
      form route (attention)
      variant scaling = given
      variant unmasked = causal
      param scale = model.model.language_model.layers[i].self_attn.scaling
      point q_in = arg q of attention
      point k_in = arg k of attention
      point v_in = arg v of attention
      boundary at model.language_model.layers.{i}.self_attn {
        q = arg q of attention,
        k = arg k of attention,
        v = arg v of attention,
        seen = arg mask of attention,
        y = output of attention
      }
    }

    seat o : linear_proj version 1 at model.language_model.layers.{i}.self_attn.o_proj {
      dims { K = Hq * Dh, N = D }
      variant bias = match config.text_config.attention_bias { false => none, true => add }
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at model.language_model.layers.{i}.self_attn.o_proj { x = input, y = output }
      expect class (Linear)
    }

    seat ffn_norm : norm_fused version 2 at model.language_model.layers.{i}.post_attention_layernorm {
      dims { D = D }
      variant norm = rms
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      param eps = config.text_config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at model.language_model.layers.{i}.post_attention_layernorm { x = input, y = output }
    }

    seat ffn : decoder_ffn.mlp version 1 at model.language_model.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = match config.text_config.hidden_act {
        "silu" => silu,
        "gelu_pytorch_tanh" => gelu,
        else => refuse
      }
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      variant conditioning = none
      param eps = config.text_config.rms_norm_eps
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      point x_after_norm  = input
      point act_after_mul = input of down_proj
      boundary at model.language_model.layers.{i} {
        x = input of post_attention_layernorm,
        y = output,
        slot w_norm = post_attention_layernorm.weight
      }
      expect class (Qwen3VLTextMLP)
      expect bias none of (gate_proj, up_proj, down_proj)
      expect returns tensor
    }
  }

  seat final_norm : norm_fused version 2 at model.language_model.norm {
    dims { D = D }
    variant norm = rms
    variant norm_weight_mode = direct
    variant norm_rounding = before_weight
    param eps = config.text_config.rms_norm_eps
    slot w = weight
    point x_in = input
    boundary at model.language_model.norm { x = input, y = output }
  }

  evidence """
  Each norm of the tower has the eps 1e-6, which its config doesn't hold. A merger is no
  `vision_ffn`: its norm comes before four patches become one row, its gelu is the exact one (the
  blocks have tanh), it has no residual, and it leaves at another width. So its norm and its
  two products are seats, and its activation stays the host's.
  Up to transformers 5.12 none of its decoders can be imported beside the `kernels` package that
  frtspec needs: transformers named its kernels without a version, which `kernels` refuses.
  Verified on 5.13.0 and 5.24.0, built small.
  The cache is handed to layers as `past_key_values`, since 5.24 as `cache`; no seat takes it.
  """
}
