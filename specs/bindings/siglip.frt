frt 1

binding siglip {
  """SigLIP vision towers as transformers builds them."""
  status draft
  host transformers ">=5.13,<6" class SiglipVisionModel

  dims {
    D = config.hidden_size,
    F = config.intermediate_size,
    L = config.num_hidden_layers,
    H = config.num_attention_heads
  }

  each i in 0..L {
    seat norm1 : norm_fused version 1 at encoder.layers.{i}.layer_norm1 {
      dims { D = D }
      param eps = config.layer_norm_eps
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at encoder.layers.{i}.layer_norm1 { x = input, y = output }
      expect class (LayerNorm)
    }

    seat qkv : qkv_pack version 1 at encoder.layers.{i}.self_attn {
      dims { K = D, N[0] = D, N[1] = D, N[2] = D }
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

    seat attention : attention_core version 1 at encoder.layers.{i}.self_attn {
      dims { H = H, Hkv = H, D = D / H }
      form route (attention)
      variant scaling = head_dim
      point q_in = arg q of attention
      point k_in = arg k of attention
      point v_in = arg v of attention
      boundary at encoder.layers.{i}.self_attn {
        q = arg q of attention,
        k = arg k of attention,
        v = arg v of attention,
        mask = arg mask of attention,
        y = output of attention
      }
    }

    seat o : linear_proj version 1 at encoder.layers.{i}.self_attn.out_proj {
      dims { K = D, N = D }
      variant bias = add
      variant epilogue = none
      slot w = weight : out_in
      slot b = bias
      point x_in = input
      boundary at encoder.layers.{i}.self_attn.out_proj { x = input, y = output }
      expect class (Linear)
    }

    seat norm2 : norm_fused version 1 at encoder.layers.{i}.layer_norm2 {
      dims { D = D }
      param eps = config.layer_norm_eps
      slot w = weight
      slot b = bias
      point x_in = input
      boundary at encoder.layers.{i}.layer_norm2 { x = input, y = output }
      expect class (LayerNorm)
    }

    seat mlp : vision_ffn.mlp version 3 at encoder.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = match config.hidden_act {
        "gelu_pytorch_tanh" => gelu_tanh,
        "gelu" => gelu_erf,
        else => refuse
      }
      variant norm_affine = learned
      variant bias = add
      param eps = config.layer_norm_eps
      slot w_fc1 = fc1.weight : out_in
      slot b_fc1 = fc1.bias
      slot w_fc2 = fc2.weight : out_in
      slot b_fc2 = fc2.bias
      point x_after_norm     = input
      point hidden_after_act = input of fc2
      boundary at encoder.layers.{i} {
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

  seat post : norm_fused version 1 at post_layernorm {
    dims { D = D }
    param eps = config.layer_norm_eps
    slot w = weight
    slot b = bias
    point x_in = input
    boundary at post_layernorm { x = input, y = output }
    expect class (LayerNorm)
  }

  seat head : vision_ffn.mlp version 3 at head.mlp when config.vision_use_head ?? true {
    dims { D = D, F = F }
    variant activation = match config.hidden_act {
      "gelu_pytorch_tanh" => gelu_tanh,
      "gelu" => gelu_erf,
      else => refuse
    }
    variant norm_affine = learned
    variant bias = add
    param eps = config.layer_norm_eps
    slot w_fc1 = fc1.weight : out_in
    slot b_fc1 = fc1.bias
    slot w_fc2 = fc2.weight : out_in
    slot b_fc2 = fc2.bias
    point x_after_norm     = input
    point hidden_after_act = input of fc2
    boundary none "the pooling head returns one row of what it adds the MLP's output to"
    expect class (SiglipMLP)
    expect bias all of (fc1, fc2)
    expect returns tensor
  }

  evidence """
  transformers 5.6 took the level `vision_model` out of these paths: up to 5.5 every one of
  them begins with `vision_model.`. The patch embedding is a convolution over images, not over
  rows of patches, and the pooling head attends with torch's own module, so both stay the host's.
  Up to transformers 5.12 none of its models can be imported beside the `kernels` package that
  frtspec needs: transformers named its kernels without a version, which `kernels` refuses.
  Verified on 5.13.0 and 5.24.0, built small.
  """
}
