frt 1

binding qwen3 {
  """Qwen3 dense decoders as transformers builds them."""
  status draft
  host transformers ">=5.13,<6" class Qwen3ForCausalLM

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
      variant bias = match config.attention_bias { false => none, true => add }
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

    seat rope : qk_norm_rope version 1 at model.layers.{i}.self_attn {
      dims { Hq = Hq, Hkv = Hkv, D = Dh, R = Dh }
      form route (rope)
      variant normalization_scope = per_head
      variant rope_layout = half
      variant norm_weight_mode = direct
      variant norm_rounding = before_weight
      variant rope_dtype = host
      param eps = config.rms_norm_eps
      slot q_norm_weight = q_norm.weight
      slot k_norm_weight = k_norm.weight
      point q_rotated = output[0] of rope
      point k_rotated = output[1] of rope
      boundary at model.layers.{i}.self_attn {
        q = input of q_norm,
        k = input of k_norm,
        cos = arg position_embeddings[0] : half,
        sin = arg position_embeddings[1] : half,
        q_after_rope = output[0] of rope : heads_first,
        k_after_rope = output[1] of rope : heads_first
      }
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
      variant bias = match config.attention_bias { false => none, true => add }
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
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
      expect class (Qwen3MLP)
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

  pipeline autoregressive_decode_pipeline version 2 {
    stage prefill at model {
      window token_ids = input of model.embed_tokens
      window logits = output of lm_head
      capture eager "its length is the prompt's"
    }
    stage token_select at lm_head {
      window logits = output of lm_head
      policy greedy
    }
    stage decode at model {
      window token_id = input of model.embed_tokens
      window logits = output of lm_head
      capture bucketed "by the length of a static cache"
    }
    loop generate steps = config.max_position_embeddings

    coverage complete_hot_path {
      hot_path (
        prefill_embedding, prefill_layers, prefill_readout, decode_embedding, decode_layers, kv_cache,
        decode_readout, token_choice
      )
      segment prefill_embedding : host_stage in prefill { seam "model.embed_tokens" }
      segment prefill_layers : structure in prefill {
        seats (input_norm, qkv, rope, attention, o, ffn_norm, ffn)
      }
      segment prefill_readout : host_stage in prefill { seam "model.norm, a seat of its own, and lm_head" }
      segment decode_embedding : host_stage in decode { seam "model.embed_tokens" }
      segment decode_layers : structure in decode {
        seats (input_norm, qkv, rope, attention, o, ffn_norm, ffn)
      }
      segment kv_cache : state_region in decode { seam "the layers of the cache that is handed in" }
      segment decode_readout : host_stage in decode { seam "model.norm, a seat of its own, and lm_head" }
      segment token_choice : control in token_select { seam "the largest of the last logits" }
    }
  }

  evidence """
  Up to transformers 5.12 none of its decoders can be imported beside the `kernels` package that
  frtspec needs: transformers named its kernels without a version, which `kernels` refuses.
  Verified on 5.13.0 and 5.24.0, built small.
  The cache is handed to layers as `past_key_values`, since 5.24 as `cache`; no seat takes it.
  """
}
