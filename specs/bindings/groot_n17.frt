frt 1

binding groot_n17 {
  """GR00T N1.7 as lerobot builds it: a Qwen3-VL backbone and a diffusion transformer.

  The model is the policy's `_groot_model`. Layers of the backbone behind the one that is selected
  are cut off. The last layer is read by a hook, so it is called as a module. Blocks of the
  transformer attend to the prefix and to themselves by turns; keys and values of the prefix do not
  move while an observation lasts.
  """
  status draft
  host lerobot ">=0.6.1,<0.7" class GR00TN17

  dims {
    Dv = model.backbone.model.config.vision_config.hidden_size,
    Fv = model.backbone.model.config.vision_config.intermediate_size,
    Lv = model.backbone.model.config.vision_config.depth,
    Hv = model.backbone.model.config.vision_config.num_heads,
    D = model.backbone.model.config.text_config.hidden_size,
    F = model.backbone.model.config.text_config.intermediate_size,
    L = model.backbone.select_layer,
    H = model.backbone.model.config.text_config.num_attention_heads,
    Hkv = model.backbone.model.config.text_config.num_key_value_heads,
    Dh = model.backbone.model.config.text_config.head_dim,
    Da = model.action_head.model.inner_dim,
    La = model.action_head.model.config.num_layers
  }

  each i in 0..Lv {
    seat vision_norm1 : norm_fused version 1 at backbone.model.model.visual.blocks.{i}.norm1 {
      dims { D = Dv }
      param eps = 1e-6
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at backbone.model.model.visual.blocks.{i}.norm1 { x = input, y = output }
      expect class (LayerNorm)
    }

    seat vision_qkv : linear_proj version 1 at backbone.model.model.visual.blocks.{i}.attn.qkv {
      dims { K = Dv, N = 3 * Dv }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at backbone.model.model.visual.blocks.{i}.attn.qkv { x = input, y = output }
    }

    seat vision_attention : attention_core version 1 at backbone.model.model.visual.blocks.{i}.attn {
      dims { H = Hv, Hkv = Hv, D = Dv / Hv }
      form route (attention)
      variant scaling = head_dim
      point q_in = arg q of attention
      point k_in = arg k of attention
      point v_in = arg v of attention
      boundary at backbone.model.model.visual.blocks.{i}.attn {
        q = arg q of attention,
        k = arg k of attention,
        v = arg v of attention,
        mask = arg mask of attention,
        y = output of attention
      }
    }

    seat vision_o : linear_proj version 1 at backbone.model.model.visual.blocks.{i}.attn.proj {
      dims { K = Dv, N = Dv }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at backbone.model.model.visual.blocks.{i}.attn.proj { x = input, y = output }
    }

    seat vision_norm2 : norm_fused version 1 at backbone.model.model.visual.blocks.{i}.norm2 {
      dims { D = Dv }
      param eps = 1e-6
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at backbone.model.model.visual.blocks.{i}.norm2 { x = input, y = output }
      expect class (LayerNorm)
    }

    seat vision_ffn : vision_ffn.mlp version 3 at backbone.model.model.visual.blocks.{i}.mlp {
      dims { D = Dv, F = Fv }
      variant activation = gelu_tanh
      variant norm_affine = learned
      variant bias = add
      param eps = 1e-6
      slot w_fc1 = linear_fc1.weight : out_in
      slot b_fc1 = linear_fc1.bias
      slot w_fc2 = linear_fc2.weight : out_in
      slot b_fc2 = linear_fc2.bias
      point x_after_norm     = input
      point hidden_after_act = input of linear_fc2
      boundary at backbone.model.model.visual.blocks.{i} {
        x = input of norm2,
        y = output,
        slot w_norm = norm2.weight,
        slot b_norm = norm2.bias
      }
      expect class (Qwen3VLVisionMLP)
      expect activation gelu_tanh of act_fn
      expect returns tensor
    }
  }

  each j in 0..L {
    seat llm_norm1 : norm_fused version 2 at backbone.model.model.language_model.layers.{j}.input_layernorm {
      dims { D = D }
      variant norm = rms
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      param eps = model.backbone.model.config.text_config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at backbone.model.model.language_model.layers.{j}.input_layernorm { x = input, y = output }
      expect class (Qwen3VLTextRMSNorm)
      expect returns tensor
    }

    seat llm_qkv : qkv_pack version 1 at backbone.model.model.language_model.layers.{j}.self_attn {
      dims { K = D, N[0] = H * Dh, N[1] = Hkv * Dh, N[2] = Hkv * Dh }
      variant bias = none
      siblings prove (shared_input, call_order) {
        w[0] = q_proj.weight : out_in,
        w[1] = k_proj.weight : out_in,
        w[2] = v_proj.weight : out_in
      }
      point x_in = input of q_proj
    }

    seat llm_o : linear_proj version 1 at backbone.model.model.language_model.layers.{j}.self_attn.o_proj {
      dims { K = H * Dh, N = D }
      variant bias = none
      variant epilogue = none
      slot w = weight : out_in
      point x_in = input
      boundary at backbone.model.model.language_model.layers.{j}.self_attn.o_proj { x = input, y = output }
    }

    seat llm_norm2 : norm_fused version 2 at backbone.model.model.language_model.layers.{j}.post_attention_layernorm {
      dims { D = D }
      variant norm = rms
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      param eps = model.backbone.model.config.text_config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at backbone.model.model.language_model.layers.{j}.post_attention_layernorm {
        x = input,
        y = output
      }
      expect class (Qwen3VLTextRMSNorm)
      expect returns tensor
    }

    seat llm_ffn : decoder_ffn.mlp version 1 at backbone.model.model.language_model.layers.{j}.mlp {
      dims { D = D, F = F }
      variant activation = silu
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      variant conditioning = none
      param eps = model.backbone.model.config.text_config.rms_norm_eps
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      point x_after_norm  = input
      point act_after_mul = input of down_proj
      boundary at backbone.model.model.language_model.layers.{j} {
        x = input of post_attention_layernorm,
        y = output,
        slot w_norm = post_attention_layernorm.weight
      }
      expect class (Qwen3VLTextMLP)
      expect bias none of (gate_proj, up_proj, down_proj)
      expect activation silu of act_fn
      expect returns tensor
    }
  }

  each k in 0..La {
    seat norm1 : adaln_producer version 1 at action_head.model.transformer_blocks.{k}.norm1 {
      dims { D = Da, C = Da }
      variant norm = layer
      variant style = scale_shift
      variant style_order = scale_first
      variant cond_activation = silu
      variant epilogue = none
      param eps = model.action_head.model.transformer_blocks[k].norm1.norm.eps
      slot pair_w = linear.weight : out_in
      slot pair_b = linear.bias
      point cond_in = arg temb
      point x_in    = input
      boundary at action_head.model.transformer_blocks.{k}.norm1 { x = input, cond = arg temb, y = output }
      expect class (AdaLayerNorm)
      expect returns tensor
    }

    seat self_qkv : qkv_pack version 1 at action_head.model.transformer_blocks.{k}.attn1 when k % 2 == 1 {
      dims { K = Da, N[0] = Da, N[1] = Da, N[2] = Da }
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

    seat cross_q : linear_proj version 1 at action_head.model.transformer_blocks.{k}.attn1.to_q when k % 2 == 0 {
      dims { K = Da, N = Da }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at action_head.model.transformer_blocks.{k}.attn1.to_q { x = input, y = output }
    }

    seat cross_k : cadence_static version 1 at action_head.model.transformer_blocks.{k}.attn1.to_k when k % 2 == 0 {
      form update (cadence = observation)
      dims { N = Da }
      point held = output
      boundary at action_head.model.transformer_blocks.{k}.attn1.to_k { x = input, y = output }
      expect returns tensor
    }

    seat cross_v : cadence_static version 1 at action_head.model.transformer_blocks.{k}.attn1.to_v when k % 2 == 0 {
      form update (cadence = observation)
      dims { N = Da }
      point held = output
      boundary at action_head.model.transformer_blocks.{k}.attn1.to_v { x = input, y = output }
      expect returns tensor
    }

    seat o : linear_proj version 1 at action_head.model.transformer_blocks.{k}.attn1.to_out.0 {
      dims { K = Da, N = Da }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at action_head.model.transformer_blocks.{k}.attn1.to_out.0 { x = input, y = output }
    }

    seat ff : vision_ffn.mlp version 3 at action_head.model.transformer_blocks.{k}.ff {
      dims { D = Da, F = 4 * Da }
      variant activation = gelu_tanh
      variant norm_affine = identity
      variant bias = add
      param eps = model.action_head.model.config.norm_eps
      slot w_fc1 = net.0.proj.weight : out_in
      slot b_fc1 = net.0.proj.bias
      slot w_fc2 = net.2.weight : out_in
      slot b_fc2 = net.2.bias
      point x_after_norm     = input
      point hidden_after_act = input of net.2
      boundary at action_head.model.transformer_blocks.{k} { x = input of norm3, y = output }
      expect class (FeedForward)
      expect returns tensor
    }
  }
}
