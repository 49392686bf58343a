frt 1

binding pi05 {
  """The pi0.5 policy as lerobot builds it: a PaliGemma prefix and a Gemma action expert.

  The policy's own config has no sizes, so they are read from the parts. Layers are of a class that
  a factory makes anew for every model. Norms return a tuple; those of the expert are adaptive and
  hold a projection instead of a weight. The vision tower and the projector run once an observation,
  the expert at every step of the denoising loop.
  """
  status draft
  host lerobot ">=0.6.1,<0.7" class PI05Policy

  dims {
    Dv = model.model.paligemma_with_expert.paligemma.config.vision_config.hidden_size,
    Fv = model.model.paligemma_with_expert.paligemma.config.vision_config.intermediate_size,
    Lv = model.model.paligemma_with_expert.paligemma.config.vision_config.num_hidden_layers,
    Hv = model.model.paligemma_with_expert.paligemma.config.vision_config.num_attention_heads,
    D = model.model.paligemma_with_expert.paligemma.config.text_config.hidden_size,
    F = model.model.paligemma_with_expert.paligemma.config.text_config.intermediate_size,
    L = model.model.paligemma_with_expert.paligemma.config.text_config.num_hidden_layers,
    H = model.model.paligemma_with_expert.paligemma.config.text_config.num_attention_heads,
    Hkv = model.model.paligemma_with_expert.paligemma.config.text_config.num_key_value_heads,
    Dh = model.model.paligemma_with_expert.paligemma.config.text_config.head_dim,
    De = model.model.paligemma_with_expert.gemma_expert.config.hidden_size,
    Fe = model.model.paligemma_with_expert.gemma_expert.config.intermediate_size,
    Le = model.model.paligemma_with_expert.gemma_expert.config.num_hidden_layers,
    C = model.model.paligemma_with_expert.gemma_expert.config.adarms_cond_dim,
    He = model.model.paligemma_with_expert.gemma_expert.config.num_attention_heads,
    Hekv = model.model.paligemma_with_expert.gemma_expert.config.num_key_value_heads,
    Dhe = model.model.paligemma_with_expert.gemma_expert.config.head_dim
  }

  each i in 0..Lv {
    seat vision_norm1 : norm_fused version 1 at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i}.layer_norm1 {
      dims { D = Dv }
      param eps = model.model.paligemma_with_expert.paligemma.config.vision_config.layer_norm_eps
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i}.layer_norm1 {
        x = input,
        y = output
      }
      expect class (LayerNorm)
    }

    seat vision_qkv : qkv_pack version 1 at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i}.self_attn {
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

    seat vision_attention : attention_core version 1 at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i}.self_attn {
      dims { H = Hv, Hkv = Hv, D = Dv / Hv }
      form route (attention)
      variant scaling = head_dim
      point q_in = arg q of attention
      point k_in = arg k of attention
      point v_in = arg v of attention
      boundary at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i}.self_attn {
        q = arg q of attention,
        k = arg k of attention,
        v = arg v of attention,
        mask = arg mask of attention,
        y = output of attention
      }
    }

    seat vision_o : linear_proj version 1 at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i}.self_attn.out_proj {
      dims { K = Dv, N = Dv }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i}.self_attn.out_proj {
        x = input,
        y = output
      }
    }

    seat vision_norm2 : norm_fused version 1 at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i}.layer_norm2 {
      dims { D = Dv }
      param eps = model.model.paligemma_with_expert.paligemma.config.vision_config.layer_norm_eps
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i}.layer_norm2 {
        x = input,
        y = output
      }
      expect class (LayerNorm)
    }

    seat vision_ffn : vision_ffn.mlp version 3 at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i}.mlp {
      dims { D = Dv, F = Fv }
      variant activation = gelu_tanh
      variant norm_affine = learned
      variant bias = add
      param eps = model.model.paligemma_with_expert.paligemma.config.vision_config.layer_norm_eps
      slot w_fc1 = fc1.weight : out_in
      slot b_fc1 = fc1.bias
      slot w_fc2 = fc2.weight : out_in
      slot b_fc2 = fc2.bias
      point x_after_norm     = input
      point hidden_after_act = input of fc2
      boundary at model.paligemma_with_expert.paligemma.model.vision_tower.vision_model.encoder.layers.{i} {
        x = input of layer_norm2,
        y = output,
        slot w_norm = layer_norm2.weight,
        slot b_norm = layer_norm2.bias
      }
      expect class (SiglipMLP)
      expect activation gelu_tanh of activation_fn
      expect returns tensor
    }
  }

  seat features : cadence_static version 1 at model.paligemma_with_expert.paligemma.model.multi_modal_projector {
    form update (cadence = observation)
    dims { N = model.model.paligemma_with_expert.paligemma.model.multi_modal_projector.linear.out_features }
    point held = output
    boundary at model.paligemma_with_expert.paligemma.model.multi_modal_projector { x = input, y = output }
    expect returns tensor
  }

  each j in 0..L {
    seat prefix_qkv : qkv_pack version 1 at model.paligemma_with_expert.paligemma.model.language_model.layers.{j}.self_attn {
      dims { K = D, N[0] = H * Dh, N[1] = Hkv * Dh, N[2] = Hkv * Dh }
      variant bias = none
      siblings prove (shared_input, call_order) {
        w[0] = q_proj.weight : out_in,
        w[1] = k_proj.weight : out_in,
        w[2] = v_proj.weight : out_in
      }
      point x_in = input of q_proj
    }

    seat prefix_attention : attention_core version 1 at model.paligemma_with_expert.paligemma.model.language_model.layers.{j}.self_attn {
      form route (attention)
      dims { H = H, Hkv = Hkv, D = Dh }
      variant scaling = head_dim
      point q_in = arg q of attention
      point k_in = arg k of attention
      point v_in = arg v of attention
      boundary at model.paligemma_with_expert.paligemma.model.language_model.layers.{j}.self_attn {
        q = arg q of attention,
        k = arg k of attention,
        v = arg v of attention,
        mask = arg mask of attention,
        y = output[0] of attention
      }
    }

    seat prefix_o : linear_proj version 1 at model.paligemma_with_expert.paligemma.model.language_model.layers.{j}.self_attn.o_proj {
      dims { K = H * Dh, N = D }
      variant bias = none
      variant epilogue = none
      slot w = weight : out_in
      point x_in = input
      boundary at model.paligemma_with_expert.paligemma.model.language_model.layers.{j}.self_attn.o_proj {
        x = input,
        y = output
      }
    }

    seat prefix_ffn : decoder_ffn.mlp version 1 at model.paligemma_with_expert.paligemma.model.language_model.layers.{j}.mlp {
      dims { D = D, F = F }
      variant activation = gelu
      variant norm_weight_mode = offset
      variant norm_rounding = after_weight
      variant conditioning = none
      param eps = model.model.paligemma_with_expert.paligemma.config.text_config.rms_norm_eps
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      point x_after_norm  = input
      point act_after_mul = input of down_proj
      boundary at model.paligemma_with_expert.paligemma.model.language_model.layers.{j} {
        x = input of post_attention_layernorm,
        y = output,
        slot w_norm = post_attention_layernorm.weight
      }
      expect class (GemmaMLP)
      expect bias none of (gate_proj, up_proj, down_proj)
      expect activation gelu_tanh of act_fn
      expect returns tensor
    }
  }

  each k in 0..Le {
    seat expert_norm1 : adaln_producer version 1 at model.paligemma_with_expert.gemma_expert.model.layers.{k}.input_layernorm {
      dims { D = De, C = C }
      variant norm = rms
      variant style = scale_shift_gate
      variant style_order = scale_first
      variant cond_activation = none
      variant epilogue = none
      param eps = model.model.paligemma_with_expert.gemma_expert.config.rms_norm_eps
      slot style_w = dense.weight : out_in
      slot style_b = dense.bias
      point cond_in = arg cond
      point x_in    = input
      boundary at model.paligemma_with_expert.gemma_expert.model.layers.{k}.input_layernorm {
        x = input,
        cond = arg cond,
        y = output[0],
        gate = output[1] : one_token
      }
      expect class (PiGemmaRMSNorm)
      expect returns tuple
    }

    seat expert_qkv : qkv_pack version 1 at model.paligemma_with_expert.gemma_expert.model.layers.{k}.self_attn {
      dims { K = De, N[0] = He * Dhe, N[1] = Hekv * Dhe, N[2] = Hekv * Dhe }
      variant bias = none
      siblings prove (shared_input, call_order) {
        w[0] = q_proj.weight : out_in,
        w[1] = k_proj.weight : out_in,
        w[2] = v_proj.weight : out_in
      }
      point x_in = input of q_proj
    }

    seat expert_attention : attention_core version 1 at model.paligemma_with_expert.gemma_expert.model.layers.{k}.self_attn {
      form route (attention)
      dims { H = He, Hkv = Hekv, D = Dhe }
      variant scaling = head_dim
      point q_in = arg q of attention
      point k_in = arg k of attention
      point v_in = arg v of attention
      boundary at model.paligemma_with_expert.gemma_expert.model.layers.{k}.self_attn {
        q = arg q of attention,
        k = arg k of attention,
        v = arg v of attention,
        mask = arg mask of attention,
        y = output[0] of attention
      }
    }

    seat expert_o : linear_proj version 1 at model.paligemma_with_expert.gemma_expert.model.layers.{k}.self_attn.o_proj {
      dims { K = He * Dhe, N = De }
      variant bias = none
      variant epilogue = none
      slot w = weight : out_in
      point x_in = input
      boundary at model.paligemma_with_expert.gemma_expert.model.layers.{k}.self_attn.o_proj {
        x = input,
        y = output
      }
    }

    seat expert_norm2 : adaln_producer version 1 at model.paligemma_with_expert.gemma_expert.model.layers.{k}.post_attention_layernorm {
      dims { D = De, C = C }
      variant norm = rms
      variant style = scale_shift_gate
      variant style_order = scale_first
      variant cond_activation = none
      variant epilogue = none
      param eps = model.model.paligemma_with_expert.gemma_expert.config.rms_norm_eps
      slot style_w = dense.weight : out_in
      slot style_b = dense.bias
      point cond_in = arg cond
      point x_in    = input
      boundary at model.paligemma_with_expert.gemma_expert.model.layers.{k}.post_attention_layernorm {
        x = input,
        cond = arg cond,
        y = output[0],
        gate = output[1] : one_token
      }
      expect class (PiGemmaRMSNorm)
      expect returns tuple
    }

    seat expert_ffn : decoder_ffn.mlp version 1 at model.paligemma_with_expert.gemma_expert.model.layers.{k}.mlp {
      dims { D = De, F = Fe }
      variant activation = gelu
      variant norm_weight_mode = offset
      variant norm_rounding = after_weight
      variant conditioning = ada_ln
      param eps = model.model.paligemma_with_expert.gemma_expert.config.rms_norm_eps
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      point x_after_norm  = input
      point act_after_mul = input of down_proj
      boundary none "scale, shift and gate are made inside the norm and never stand in a tensor of all rows"
      expect class (GemmaMLP)
      expect bias none of (gate_proj, up_proj, down_proj)
      expect activation gelu_tanh of act_fn
      expect returns tensor
    }
  }

  seat expert_norm : adaln_producer version 1 at model.paligemma_with_expert.gemma_expert.model.norm {
    dims { D = De, C = C }
    variant norm = rms
    variant style = scale_shift_gate
    variant style_order = scale_first
    variant cond_activation = none
    variant epilogue = none
    param eps = model.model.paligemma_with_expert.gemma_expert.config.rms_norm_eps
    slot style_w = dense.weight : out_in
    slot style_b = dense.bias
    point cond_in = arg cond
    point x_in    = input
    boundary at model.paligemma_with_expert.gemma_expert.model.norm {
      x = input,
      cond = arg cond,
      y = output[0],
      gate = output[1] : one_token
    }
    expect class (PiGemmaRMSNorm)
    expect returns tuple
  }

  seat action_in : linear_proj version 1 at model.action_in_proj {
    dims { N = De }
    variant bias = add
    variant epilogue = none
    slot w = weight : out_in
    slot b = bias
    point x_in = input
    boundary at model.action_in_proj { x = input, y = output }
  }

  seat time_in : linear_proj version 1 at model.time_mlp_in {
    dims { K = De, N = De }
    variant bias = add
    variant epilogue = none
    slot w = weight : out_in
    slot b = bias
    point x_in = input
    boundary at model.time_mlp_in { x = input, y = output }
  }

  seat time_out : linear_proj version 1 at model.time_mlp_out {
    dims { K = De, N = De }
    variant bias = add
    variant epilogue = none
    slot w = weight : out_in
    slot b = bias
    point x_in = input
    boundary at model.time_mlp_out { x = input, y = output }
  }

  seat action_out : linear_proj version 1 at model.action_out_proj {
    dims { K = De }
    variant bias = add
    variant epilogue = none
    slot w = weight : out_in
    slot b = bias
    point x_in = input
    boundary at model.action_out_proj { x = input, y = output }
  }

  pipeline vla_tick_pipeline version 2 {
    stage obs_encode at model.paligemma_with_expert.paligemma {
      window images = input of model.paligemma_with_expert.paligemma.model.vision_tower
      window language = input of model.paligemma_with_expert.paligemma.model.language_model.embed_tokens
      capture eager "the masks are made of the observation's own lengths"
    }
    stage action_denoise at model.paligemma_with_expert.gemma_expert {
      window noise = input of model.action_in_proj
      window action_chunk = output of model.action_out_proj
      capture graph "one graph for all steps"
    }
    loop denoise steps = config.num_inference_steps
    cadence observation runs obs_encode
    cadence tick runs (obs_encode, action_denoise)
    cadence replan runs action_denoise

    coverage complete_hot_path {
      hot_path (
        observation_preprocess, image_tower, image_features, language_embedding, prefix_layers, prefix_kv,
        time_conditioning, action_embedding, expert_layers, euler_update
      )
      segment observation_preprocess : host_stage in obs_encode {
        seam "PI05Policy's resize, normalisation and missing cameras"
      }
      segment image_tower : structure in obs_encode {
        seats (vision_norm1, vision_qkv, vision_attention, vision_o, vision_norm2, vision_ffn)
      }
      segment image_features : host_stage in obs_encode { seam "multi_modal_projector" }
      segment language_embedding : host_stage in obs_encode { seam "embed_language_tokens" }
      segment prefix_layers : structure in obs_encode {
        seats (prefix_qkv, prefix_attention, prefix_o, prefix_ffn)
      }
      segment prefix_kv : state_region in obs_encode {
        seam "past_key_values of the prefix, copied at each step"
      }
      segment time_conditioning : structure in action_denoise { seats (time_in, time_out) }
      segment action_embedding : structure in action_denoise { seats (action_in, action_out) }
      segment expert_layers : structure in action_denoise {
        seats (expert_norm1, expert_qkv, expert_attention, expert_o, expert_norm2, expert_ffn, expert_norm)
      }
      segment euler_update : state_region in action_denoise { seam "x_t + dt * v_t" }
    }
  }
}
