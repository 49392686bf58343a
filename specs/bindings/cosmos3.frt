frt 1

binding cosmos3 {
  """Cosmos 3 omni transformers as diffusers builds them.

  Two streams of tokens, with weights of their own, meet in one factored attention. The
  understanding stream attends to itself, causally; the generation stream attends to both, with
  no mask. One function serves both, told apart by what it is called with, so each of the two
  attentions is a seat.
  """
  status draft
  host diffusers ">=0.40,<0.43" class Cosmos3OmniTransformer

  dims {
    D = config.hidden_size,
    F = config.intermediate_size,
    L = config.num_hidden_layers,
    H = config.num_attention_heads,
    Hkv = config.num_key_value_heads,
    Dh = config.head_dim,
    P = config.patch_latent_dim
  }

  seat patch_in : linear_proj version 1 at proj_in {
    dims { K = P, N = D }
    variant bias = add
    variant epilogue = none
    slot w = weight : out_in
    slot b = bias
    point x_in = input
    boundary at proj_in { x = input, y = output }
    expect class (Linear)
  }

  each i in 0..L {
    seat norm1 : norm_fused version 2 at layers.{i}.input_layernorm {
      dims { D = D }
      variant norm = rms
      variant norm_weight_mode = direct
      variant norm_rounding = match config.hidden_act {
        "silu" => before_weight,
        "relu2" => after_weight,
        else => refuse
      }
      param eps = config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at layers.{i}.input_layernorm { x = input, y = output }
      expect class (RMSNorm, Cosmos3NemotronRMSNorm)
    }

    seat add_norm1 : norm_fused version 2 at layers.{i}.input_layernorm_moe_gen {
      dims { D = D }
      variant norm = rms
      variant norm_weight_mode = direct
      variant norm_rounding = match config.hidden_act {
        "silu" => before_weight,
        "relu2" => after_weight,
        else => refuse
      }
      param eps = config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at layers.{i}.input_layernorm_moe_gen { x = input, y = output }
      expect class (RMSNorm, Cosmos3NemotronRMSNorm)
    }

    seat qkv : qkv_pack version 1 at layers.{i}.self_attn {
      dims { K = D, N[0] = H * Dh, N[1] = Hkv * Dh, N[2] = Hkv * Dh }
      variant bias = match config.attention_bias { false => none, true => add }
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

    seat add_qkv : qkv_pack version 1 at layers.{i}.self_attn {
      dims { K = D, N[0] = H * Dh, N[1] = Hkv * Dh, N[2] = Hkv * Dh }
      variant bias = match config.attention_bias { false => none, true => add }
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

    seat attention : attention_core version 2 at layers.{i}.self_attn {
      form route (dispatched_attention, called_with = is_causal)
      dims { H = H, Hkv = Hkv, D = Dh }
      variant scaling = head_dim
      variant unmasked = causal
      point q_in = arg q of dispatched_attention
      point k_in = arg k of dispatched_attention
      point v_in = arg v of dispatched_attention
      boundary at layers.{i}.self_attn {
        q = arg q of dispatched_attention : tokens_first,
        k = arg k of dispatched_attention : tokens_first,
        v = arg v of dispatched_attention : tokens_first,
        seen = arg mask of dispatched_attention,
        y = output of dispatched_attention
      }
    }

    seat full_attention : attention_core version 2 at layers.{i}.self_attn {
      form route (dispatched_attention, called_without = is_causal)
      dims { H = H, Hkv = Hkv, D = Dh }
      variant scaling = head_dim
      variant unmasked = all
      point q_in = arg q of dispatched_attention
      point k_in = arg k of dispatched_attention
      point v_in = arg v of dispatched_attention
      boundary at layers.{i}.self_attn {
        q = arg q of dispatched_attention : tokens_first,
        k = arg k of dispatched_attention : tokens_first,
        v = arg v of dispatched_attention : tokens_first,
        seen = arg mask of dispatched_attention,
        y = output of dispatched_attention
      }
    }

    seat o : linear_proj version 1 at layers.{i}.self_attn.to_out {
      dims { K = H * Dh, N = D }
      variant bias = match config.attention_bias { false => none, true => add }
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at layers.{i}.self_attn.to_out { x = input, y = output }
      expect class (Linear)
    }

    seat add_o : linear_proj version 1 at layers.{i}.self_attn.to_add_out {
      dims { K = H * Dh, N = D }
      variant bias = match config.attention_bias { false => none, true => add }
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at layers.{i}.self_attn.to_add_out { x = input, y = output }
      expect class (Linear)
    }

    seat norm2 : norm_fused version 2 at layers.{i}.post_attention_layernorm {
      dims { D = D }
      variant norm = rms
      variant norm_weight_mode = direct
      variant norm_rounding = match config.hidden_act {
        "silu" => before_weight,
        "relu2" => after_weight,
        else => refuse
      }
      param eps = config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at layers.{i}.post_attention_layernorm { x = input, y = output }
      expect class (RMSNorm, Cosmos3NemotronRMSNorm)
    }

    seat add_norm2 : norm_fused version 2 at layers.{i}.post_attention_layernorm_moe_gen {
      dims { D = D }
      variant norm = rms
      variant norm_weight_mode = direct
      variant norm_rounding = match config.hidden_act {
        "silu" => before_weight,
        "relu2" => after_weight,
        else => refuse
      }
      param eps = config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at layers.{i}.post_attention_layernorm_moe_gen { x = input, y = output }
      expect class (RMSNorm, Cosmos3NemotronRMSNorm)
    }

    seat ffn : decoder_ffn.mlp version 1 at layers.{i}.mlp when config.hidden_act == "silu" {
      dims { D = D, F = F }
      variant activation = silu
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      variant conditioning = none
      param eps = config.rms_norm_eps
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      point x_after_norm  = input
      point act_after_mul = input of down_proj
      boundary at layers.{i} {
        x = input of post_attention_layernorm,
        y = output[0],
        slot w_norm = post_attention_layernorm.weight
      }
      expect class (Cosmos3VLTextMLP)
      expect bias none of (gate_proj, up_proj, down_proj)
      expect returns tensor
    }

    seat add_ffn : decoder_ffn.mlp version 1 at layers.{i}.mlp_moe_gen when config.hidden_act == "silu" {
      dims { D = D, F = F }
      variant activation = silu
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      variant conditioning = none
      param eps = config.rms_norm_eps
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      point x_after_norm  = input
      point act_after_mul = input of down_proj
      boundary at layers.{i} {
        x = input of post_attention_layernorm_moe_gen,
        y = output[1],
        slot w_norm = post_attention_layernorm_moe_gen.weight
      }
      expect class (Cosmos3VLTextMLP)
      expect bias none of (gate_proj, up_proj, down_proj)
      expect returns tensor
    }
  }

  seat final_norm : norm_fused version 2 at norm {
    dims { D = D }
    variant norm = rms
    variant norm_weight_mode = direct
    variant norm_rounding = match config.hidden_act {
      "silu" => before_weight,
      "relu2" => after_weight,
      else => refuse
    }
    param eps = config.rms_norm_eps
    slot w = weight
    point x_in = input
    boundary at norm { x = input, y = output }
    expect class (RMSNorm, Cosmos3NemotronRMSNorm)
  }

  seat add_final_norm : norm_fused version 2 at norm_moe_gen {
    dims { D = D }
    variant norm = rms
    variant norm_weight_mode = direct
    variant norm_rounding = match config.hidden_act {
      "silu" => before_weight,
      "relu2" => after_weight,
      else => refuse
    }
    param eps = config.rms_norm_eps
    slot w = weight
    point x_in = input
    boundary at norm_moe_gen { x = input, y = output }
    expect class (RMSNorm, Cosmos3NemotronRMSNorm)
  }

  seat patch_out : linear_proj version 1 at proj_out {
    dims { K = D, N = P }
    variant bias = add
    variant epilogue = none
    slot w = weight : out_in
    slot b = bias
    point x_in = input
    boundary at proj_out { x = input, y = output }
    expect class (Linear)
  }

  evidence """
  Norms of queries and keys with the rotation behind them are no seat here. The generation
  stream's attention is handed the keys of both streams in one, and the understanding stream's keys
  are used twice, so no single call takes what such a form gives.
  Models with `relu2` have FFNs of two products, and norms that round after the weight.
  Its own attention processor, for several devices, replaces the function's caller; then the seats
  of the attention are refused.
  """
}
