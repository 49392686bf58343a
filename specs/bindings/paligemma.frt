frt 1

binding paligemma {
  """PaliGemma as transformers builds it: a SigLIP tower, a projector and a Gemma decoder."""
  status draft
  host transformers ">=5.13,<6" class PaliGemmaForConditionalGeneration

  dims {
    D = config.text_config.hidden_size,
    F = config.text_config.intermediate_size,
    L = config.text_config.num_hidden_layers,
    Dh = config.text_config.head_dim ?? config.text_config.hidden_size / config.text_config.num_attention_heads,
    Hq = config.text_config.num_attention_heads,
    Hkv = config.text_config.num_key_value_heads,
    Dv = config.vision_config.hidden_size,
    Fv = config.vision_config.intermediate_size,
    Lv = config.vision_config.num_hidden_layers,
    Hv = config.vision_config.num_attention_heads
  }

  each i in 0..Lv {
    seat vision_norm1 : norm_fused version 1 at model.vision_tower.encoder.layers.{i}.layer_norm1 {
      dims { D = Dv }
      param eps = config.vision_config.layer_norm_eps
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at model.vision_tower.encoder.layers.{i}.layer_norm1 { x = input, y = output }
      expect class (LayerNorm)
    }

    seat vision_qkv : qkv_pack version 1 at model.vision_tower.encoder.layers.{i}.self_attn {
      dims { K = Dv, N[0] = Dv, N[1] = Dv, N[2] = Dv }
      variant bias = add
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

    seat vision_attention : attention_core version 1 at model.vision_tower.encoder.layers.{i}.self_attn {
      dims { H = Hv, Hkv = Hv, D = Dv / Hv }
      form route (attention)
      variant scaling = head_dim
      point q_in = arg q of attention
      point k_in = arg k of attention
      point v_in = arg v of attention
      boundary at model.vision_tower.encoder.layers.{i}.self_attn {
        q = arg q of attention,
        k = arg k of attention,
        v = arg v of attention,
        mask = arg mask of attention,
        y = output of attention
      }
    }

    seat vision_o : linear_proj version 1 at model.vision_tower.encoder.layers.{i}.self_attn.out_proj {
      dims { K = Dv, N = Dv }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at model.vision_tower.encoder.layers.{i}.self_attn.out_proj { x = input, y = output }
      expect class (Linear)
    }

    seat vision_norm2 : norm_fused version 1 at model.vision_tower.encoder.layers.{i}.layer_norm2 {
      dims { D = Dv }
      param eps = config.vision_config.layer_norm_eps
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at model.vision_tower.encoder.layers.{i}.layer_norm2 { x = input, y = output }
      expect class (LayerNorm)
    }

    seat vision_mlp : vision_ffn.mlp version 3 at model.vision_tower.encoder.layers.{i}.mlp {
      dims { D = Dv, F = Fv }
      variant activation = match config.vision_config.hidden_act {
        "gelu_pytorch_tanh" => gelu_tanh,
        "gelu" => gelu_erf,
        else => refuse
      }
      variant norm_affine = learned
      variant bias = add
      param eps = config.vision_config.layer_norm_eps
      slot w_fc1 = fc1.weight : out_in
      slot b_fc1 = fc1.bias
      slot w_fc2 = fc2.weight : out_in
      slot b_fc2 = fc2.bias
      point x_after_norm     = input
      point hidden_after_act = input of fc2
      boundary at model.vision_tower.encoder.layers.{i} {
        x = input of layer_norm2,
        y = output,
        slot w_norm = layer_norm2.weight,
        slot b_norm = layer_norm2.bias
      }
      expect class (SiglipMLP)
      expect bias all of (fc1, fc2)
      expect returns tensor
    }
  }

  seat vision_post : norm_fused version 1 at model.vision_tower.post_layernorm {
    dims { D = Dv }
    param eps = config.vision_config.layer_norm_eps
    slot w = weight
    slot b = bias
    point x_in = input
    boundary at model.vision_tower.post_layernorm { x = input, y = output }
    expect class (LayerNorm)
  }

  seat projector : linear_proj version 1 at model.multi_modal_projector.linear {
    dims { K = Dv, N = D }
    variant bias = add
    variant epilogue = none
    slot w = weight : out_in
    slot b = bias
    point x_in = input
    boundary at model.multi_modal_projector.linear { x = input, y = output }
    expect class (Linear)
  }

  each i in 0..L {
    seat input_norm : norm_fused version 2 at model.language_model.layers.{i}.input_layernorm {
      dims { D = D }
      variant norm = rms
      variant norm_weight_mode = offset
      variant norm_rounding = after_weight
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

    seat attention : attention_core version 2 at model.language_model.layers.{i}.self_attn when config.text_config._attn_implementation == "sdpa" {
      dims { H = Hq, Hkv = Hkv, D = Dh }
      form route (attention)
      variant scaling = given
      variant unmasked = all
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
      variant norm_weight_mode = offset
      variant norm_rounding = after_weight
      param eps = config.text_config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at model.language_model.layers.{i}.post_attention_layernorm { x = input, y = output }
    }

    seat ffn : decoder_ffn.mlp version 1 at model.language_model.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = match config.text_config.hidden_act {
        "gelu_pytorch_tanh" => gelu,
        "silu" => silu,
        else => refuse
      }
      variant norm_weight_mode = offset
      variant norm_rounding = after_weight
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
      expect class (GemmaMLP)
      expect bias none of (gate_proj, up_proj, down_proj)
      expect returns tensor
    }
  }

  seat final_norm : norm_fused version 2 at model.language_model.norm {
    dims { D = D }
    variant norm = rms
    variant norm_weight_mode = offset
    variant norm_rounding = after_weight
    param eps = config.text_config.rms_norm_eps
    slot w = weight
    point x_in = input
    boundary at model.language_model.norm { x = input, y = output }
  }

  evidence """
  PaliGemma's decoder is Gemma. PaliGemma 2 has Gemma 2 there, which norms the FFN's output before
  the residual; its class is another one, and its FFN is refused by that.
  transformers 5.6 took the level `vision_model` out of the tower's paths.
  Up to transformers 5.12 none of its decoders can be imported beside the `kernels` package that
  frtspec needs: transformers named its kernels without a version, which `kernels` refuses.
  Verified on 5.13.0 and 5.24.0, built small.
  The cache is handed to layers as `past_key_values`, since 5.24 as `cache`; no seat takes it.
  """
}
