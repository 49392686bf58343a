frt 1

binding smolvla {
  """The SmolVLA policy as lerobot builds it: a SmolVLM prefix and a Llama action expert.

  The policy calls the parts of its text layers, never a layer or an attention as a module, and adds
  residuals in place, so the seats are the parts, and their boundary is nowhere. Every
  `self_attn_every_n_layers`-th layer of the expert attends to itself; the others project keys and
  values of the prefix, which do not move while an observation lasts.
  """
  status draft
  host lerobot ">=0.6.1,<0.7" class SmolVLAPolicy

  dims {
    Dv = model.model.vlm_with_expert.config.vision_config.hidden_size,
    Fv = model.model.vlm_with_expert.config.vision_config.intermediate_size,
    Lv = model.model.vlm_with_expert.config.vision_config.num_hidden_layers,
    Hv = model.model.vlm_with_expert.config.vision_config.num_attention_heads,
    D = model.model.vlm_with_expert.config.text_config.hidden_size,
    F = model.model.vlm_with_expert.config.text_config.intermediate_size,
    L = model.model.vlm_with_expert.num_vlm_layers,
    H = model.model.vlm_with_expert.num_attention_heads,
    Hkv = model.model.vlm_with_expert.num_key_value_heads,
    Dh = model.model.vlm_with_expert.config.text_config.head_dim,
    De = model.model.vlm_with_expert.expert_hidden_size,
    Fe = model.model.vlm_with_expert.lm_expert.config.intermediate_size,
    Le = model.model.vlm_with_expert.num_expert_layers
  }

  each i in 0..Lv {
    seat vision_norm1 : norm_fused version 1 at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i}.layer_norm1 {
      dims { D = Dv }
      param eps = model.model.vlm_with_expert.config.vision_config.layer_norm_eps
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i}.layer_norm1 {
        x = input,
        y = output
      }
      expect class (LayerNorm)
    }

    seat vision_qkv : qkv_pack version 1 at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i}.self_attn {
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

    seat vision_attention : attention_core version 1 at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i}.self_attn {
      dims { H = Hv, Hkv = Hv, D = Dv / Hv }
      form route (attention)
      variant scaling = head_dim
      point q_in = arg q of attention
      point k_in = arg k of attention
      point v_in = arg v of attention
      boundary at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i}.self_attn {
        q = arg q of attention,
        k = arg k of attention,
        v = arg v of attention,
        mask = arg mask of attention,
        y = output of attention
      }
    }

    seat vision_o : linear_proj version 1 at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i}.self_attn.out_proj {
      dims { K = Dv, N = Dv }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i}.self_attn.out_proj {
        x = input,
        y = output
      }
    }

    seat vision_norm2 : norm_fused version 1 at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i}.layer_norm2 {
      dims { D = Dv }
      param eps = model.model.vlm_with_expert.config.vision_config.layer_norm_eps
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i}.layer_norm2 {
        x = input,
        y = output
      }
      expect class (LayerNorm)
    }

    seat vision_ffn : vision_ffn.mlp version 3 at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i}.mlp {
      dims { D = Dv, F = Fv }
      variant activation = gelu_tanh
      variant norm_affine = learned
      variant bias = add
      param eps = model.model.vlm_with_expert.config.vision_config.layer_norm_eps
      slot w_fc1 = fc1.weight : out_in
      slot b_fc1 = fc1.bias
      slot w_fc2 = fc2.weight : out_in
      slot b_fc2 = fc2.bias
      point x_after_norm     = input
      point hidden_after_act = input of fc2
      boundary at model.vlm_with_expert.vlm.model.vision_model.encoder.layers.{i} {
        x = input of layer_norm2,
        y = output,
        slot w_norm = layer_norm2.weight,
        slot b_norm = layer_norm2.bias
      }
      expect class (SmolVLMVisionMLP)
      expect activation gelu_tanh of activation_fn
      expect returns tensor
    }
  }

  seat features : cadence_static version 1 at model.vlm_with_expert.vlm.model.connector {
    form update (cadence = observation)
    dims { N = D }
    point held = output
    boundary at model.vlm_with_expert.vlm.model.connector { x = input, y = output }
    expect returns tensor
  }

  each j in 0..L {
    seat prefix_norm1 : norm_fused version 2 at model.vlm_with_expert.vlm.model.text_model.layers.{j}.input_layernorm {
      dims { D = D }
      variant norm = rms
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      param eps = model.model.vlm_with_expert.config.text_config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at model.vlm_with_expert.vlm.model.text_model.layers.{j}.input_layernorm {
        x = input,
        y = output
      }
      expect class (LlamaRMSNorm)
      expect returns tensor
    }

    seat prefix_qkv : qkv_pack version 1 at model.vlm_with_expert.vlm.model.text_model.layers.{j}.self_attn {
      dims { K = D, N[0] = H * Dh, N[1] = Hkv * Dh, N[2] = Hkv * Dh }
      variant bias = none
      siblings prove (shared_input, call_order) {
        w[0] = q_proj.weight : out_in,
        w[1] = k_proj.weight : out_in,
        w[2] = v_proj.weight : out_in
      }
      point x_in = input of q_proj
    }

    seat prefix_o : linear_proj version 1 at model.vlm_with_expert.vlm.model.text_model.layers.{j}.self_attn.o_proj {
      dims { K = H * Dh, N = D }
      variant bias = none
      variant epilogue = none
      slot w = weight : out_in
      point x_in = input
      boundary at model.vlm_with_expert.vlm.model.text_model.layers.{j}.self_attn.o_proj {
        x = input,
        y = output
      }
    }

    seat prefix_norm2 : norm_fused version 2 at model.vlm_with_expert.vlm.model.text_model.layers.{j}.post_attention_layernorm {
      dims { D = D }
      variant norm = rms
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      param eps = model.model.vlm_with_expert.config.text_config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at model.vlm_with_expert.vlm.model.text_model.layers.{j}.post_attention_layernorm {
        x = input,
        y = output
      }
      expect class (LlamaRMSNorm)
      expect returns tensor
    }

    seat prefix_ffn : decoder_ffn.mlp version 1 at model.vlm_with_expert.vlm.model.text_model.layers.{j}.mlp {
      dims { D = D, F = F }
      variant activation = silu
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      variant conditioning = none
      param eps = model.model.vlm_with_expert.config.text_config.rms_norm_eps
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      point x_after_norm  = input
      point act_after_mul = input of down_proj
      boundary none "this policy calls the parts of a layer, and no layer as a module"
      expect class (LlamaMLP)
      expect bias none of (gate_proj, up_proj, down_proj)
      expect activation silu of act_fn
      expect returns tensor
    }
  }

  each k in 0..Le {
    seat expert_norm1 : norm_fused version 2 at model.vlm_with_expert.lm_expert.layers.{k}.input_layernorm {
      dims { D = De }
      variant norm = rms
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      param eps = model.model.vlm_with_expert.config.text_config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at model.vlm_with_expert.lm_expert.layers.{k}.input_layernorm { x = input, y = output }
      expect class (LlamaRMSNorm)
      expect returns tensor
    }

    seat expert_qkv : qkv_pack version 1 at model.vlm_with_expert.lm_expert.layers.{k}.self_attn when config.self_attn_every_n_layers > 0 and k % config.self_attn_every_n_layers == 0 {
      dims { K = De, N[0] = H * Dh, N[1] = Hkv * Dh, N[2] = Hkv * Dh }
      variant bias = none
      siblings prove (shared_input, call_order) {
        w[0] = q_proj.weight : out_in,
        w[1] = k_proj.weight : out_in,
        w[2] = v_proj.weight : out_in
      }
      point x_in = input of q_proj
    }

    seat cross_q : linear_proj version 1 at model.vlm_with_expert.lm_expert.layers.{k}.self_attn.q_proj when config.self_attn_every_n_layers <= 0 or k % config.self_attn_every_n_layers != 0 {
      dims { K = De, N = H * Dh }
      variant bias = none
      variant epilogue = none
      slot w = weight : out_in
      point x_in = input
      boundary at model.vlm_with_expert.lm_expert.layers.{k}.self_attn.q_proj { x = input, y = output }
    }

    seat cross_k : cadence_static version 1 at model.vlm_with_expert.lm_expert.layers.{k}.self_attn.k_proj when config.self_attn_every_n_layers <= 0 or k % config.self_attn_every_n_layers != 0 {
      form update (cadence = observation)
      dims { N = Hkv * Dh }
      point held = output
      boundary at model.vlm_with_expert.lm_expert.layers.{k}.self_attn.k_proj { x = input, y = output }
      expect returns tensor
    }

    seat cross_v : cadence_static version 1 at model.vlm_with_expert.lm_expert.layers.{k}.self_attn.v_proj when config.self_attn_every_n_layers <= 0 or k % config.self_attn_every_n_layers != 0 {
      form update (cadence = observation)
      dims { N = Hkv * Dh }
      point held = output
      boundary at model.vlm_with_expert.lm_expert.layers.{k}.self_attn.v_proj { x = input, y = output }
      expect returns tensor
    }

    seat expert_o : linear_proj version 1 at model.vlm_with_expert.lm_expert.layers.{k}.self_attn.o_proj {
      dims { K = H * Dh, N = De }
      variant bias = none
      variant epilogue = none
      slot w = weight : out_in
      point x_in = input
      boundary at model.vlm_with_expert.lm_expert.layers.{k}.self_attn.o_proj { x = input, y = output }
    }

    seat expert_norm2 : norm_fused version 2 at model.vlm_with_expert.lm_expert.layers.{k}.post_attention_layernorm {
      dims { D = De }
      variant norm = rms
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      param eps = model.model.vlm_with_expert.config.text_config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at model.vlm_with_expert.lm_expert.layers.{k}.post_attention_layernorm {
        x = input,
        y = output
      }
      expect class (LlamaRMSNorm)
      expect returns tensor
    }

    seat expert_ffn : decoder_ffn.mlp version 1 at model.vlm_with_expert.lm_expert.layers.{k}.mlp {
      dims { D = De, F = Fe }
      variant activation = silu
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      variant conditioning = none
      param eps = model.model.vlm_with_expert.config.text_config.rms_norm_eps
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      point x_after_norm  = input
      point act_after_mul = input of down_proj
      boundary none "this policy calls the parts of a layer, and no layer as a module"
      expect class (LlamaMLP)
      expect bias none of (gate_proj, up_proj, down_proj)
      expect activation silu of act_fn
      expect returns tensor
    }
  }

  seat state : linear_proj version 1 at model.state_proj {
    dims { N = D }
    variant bias = add
    variant epilogue = none
    slot w = weight : out_in
    slot b = bias
    point x_in = input
    boundary at model.state_proj { x = input, y = output }
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

  seat time_in : linear_proj version 1 at model.action_time_mlp_in {
    dims { K = 2 * De, N = De }
    variant bias = add
    variant epilogue = none
    slot w = weight : out_in
    slot b = bias
    point x_in = input
    boundary at model.action_time_mlp_in { x = input, y = output }
  }

  seat time_out : linear_proj version 1 at model.action_time_mlp_out {
    dims { K = De, N = De }
    variant bias = add
    variant epilogue = none
    slot w = weight : out_in
    slot b = bias
    point x_in = input
    boundary at model.action_time_mlp_out { x = input, y = output }
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
}
