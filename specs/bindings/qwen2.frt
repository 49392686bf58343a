frt 1

binding qwen2 {
  """Qwen2 and Qwen2.5 dense decoders as transformers builds them."""
  status draft
  host transformers ">=5.13,<6" class Qwen2ForCausalLM

  dims {
    D = config.hidden_size,
    F = config.intermediate_size,
    L = config.num_hidden_layers,
    Dh = config.head_dim ?? config.hidden_size / config.num_attention_heads,
    Hq = config.num_attention_heads,
    Hkv = config.num_key_value_heads
  }

  each i in 0..L {
    seat input_norm : norm_fused version 2 at model.layers.{i}.input_layernorm {
      dims { D = D }
      variant norm = rms
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      param eps = config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at model.layers.{i}.input_layernorm { x = input, y = output }
    }

    seat qkv : qkv_pack version 1 at model.layers.{i}.self_attn {
      dims { K = D, N[0] = Hq * Dh, N[1] = Hkv * Dh, N[2] = Hkv * Dh }
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

    seat attention : attention_core version 2 at model.layers.{i}.self_attn when config._attn_implementation == "sdpa" {
      dims { H = Hq, Hkv = Hkv, D = Dh }
      form route (attention)
      variant scaling = given
      variant unmasked = causal
      param scale = model.model.layers[i].self_attn.scaling
      point q_in = arg q of attention
      point k_in = arg k of attention
      point v_in = arg v of attention
      boundary at model.layers.{i}.self_attn {
        q = arg q of attention,
        k = arg k of attention,
        v = arg v of attention,
        seen = arg mask of attention,
        y = output of attention
      }
    }

    seat o : linear_proj version 1 at model.layers.{i}.self_attn.o_proj {
      dims { K = Hq * Dh, N = D }
      variant bias = none
      variant epilogue = none
      slot w = weight : out_in
      point x_in = input
      boundary at model.layers.{i}.self_attn.o_proj { x = input, y = output }
      expect class (Linear)
    }

    seat ffn_norm : norm_fused version 2 at model.layers.{i}.post_attention_layernorm {
      dims { D = D }
      variant norm = rms
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      param eps = config.rms_norm_eps
      slot w = weight
      point x_in = input
      boundary at model.layers.{i}.post_attention_layernorm { x = input, y = output }
    }

    seat ffn : decoder_ffn.mlp version 1 at model.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = match config.hidden_act {
        "silu" => silu,
        "gelu_pytorch_tanh" => gelu,
        else => refuse
      }
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      variant conditioning = none
      param eps = config.rms_norm_eps
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      point x_after_norm  = input
      point act_after_mul = input of down_proj
      boundary at model.layers.{i} {
        x = input of post_attention_layernorm,
        y = output,
        slot w_norm = post_attention_layernorm.weight
      }
      expect class (Qwen2MLP)
      expect bias none of (gate_proj, up_proj, down_proj)
      expect returns tensor
    }

    chain input_norm.y -> qkv.x wire fp8_e4m3 require (same_storage, exclusive_consumer)
    chain ffn_norm.y -> ffn.x_after_norm wire fp8_e4m3 require (same_storage, exclusive_consumer)
  }

  seat final_norm : norm_fused version 2 at model.norm {
    dims { D = D }
    variant norm = rms
    variant norm_weight_mode = direct
    variant norm_rounding = before_weight
    param eps = config.rms_norm_eps
    slot w = weight
    point x_in = input
    boundary at model.norm { x = input, y = output }
  }

  evidence """
  Up to transformers 5.12 none of its decoders can be imported beside the `kernels` package that
  frtspec needs: transformers named its kernels without a version, which `kernels` refuses.
  Verified on 5.13.0 and 5.24.0, built small.
  The cache is handed to layers as `past_key_values`, since 5.24 as `cache`; no seat takes it.
  """
}
