frt 1

structure qkv_pack version 1 {
  """Two to eight sibling projections of one input, each with a width of its own."""
  status draft

  dim M, K
  index i in 2..=8
  dim N[i]

  in  x    [rows M, K] : host
  out y[i] [rows M, N[i]] : host

  slot w[i]  [K, N[i]]
  slot b[i]? [N[i]]

  reference {
    point x_in = x
    each i {
      let a = f32(x_in) @ f32(w[i])
      let a = a + f32(b[i])  when present b
      yield y[i] = cast(a, x)
    }
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, unfused_chain) }
  qualify { K * sum(N) >= 1048576 }
  qualify for fp8_wire { 2e7 <= K * sum(N) * M <= 1e9 }
}

impl fp8_static for qkv_pack version 1 {
  """One weight, one scale and one product for all siblings."""
  pack  weight = quantize(cat(each i => w[i].T), fp8_e4m3, per tensor)
  scale in_s   = static(x_in)
  numerics { acc f32, out bf16 }
  admits x_in { bf16, fp16, f32 }
  rung local "frt-packed-linear" version 1 {
    envelope { K % 16 == 0, sum(N) % 16 == 0 }
    call packed_linear (quantize(x_in, fp8_e4m3, in_s), weight, in_s, weight.scale, outputs = 3)
  }
  rung emulate
}

impl w4a16 for qkv_pack version 1 {
  """Weights in INT4 by group, for a few rows only."""
  pack weight = quantize(cat(each i => w[i].T), int4, per group 128)
  numerics { acc f32, out bf16 }
  band M in 1..=4 {
    rung torch { lower matmul to bf16_mm }
  }
  band M in 5..=64 {
    rung torch {
      envelope { K % 16 == 0 }
      lower matmul to bf16_mm
    }
  } otherwise host
}

binding two_hosts {
  host transformers ">=4.51,<6" class (Qwen3ForCausalLM, Qwen2ForCausalLM)
  dims {
    K = config.hidden_size,
    Dh = config.head_dim ?? config.hidden_size / config.num_attention_heads,
    Nq = config.num_attention_heads * Dh,
    Nkv = config.num_key_value_heads * Dh
  }

  each i in 0..config.num_hidden_layers where config.layer_types[i] == "full_attention" {
    seat qkv : qkv_pack version 1 at model.layers.{i}.self_attn when not config.fused_qkv {
      dims { K = K, N[0] = Nq, N[1] = Nkv, N[2] = Nkv }
      siblings prove (shared_input, call_order) {
        w[0] = q_proj.weight : out_in,
        w[1] = k_proj.weight : out_in,
        w[2] = v_proj.weight : out_in,
        b[0] = q_proj.bias,
        b[1] = k_proj.bias,
        b[2] = zeros
      }
      point x_in = input of q_proj
      expect bias none of (k_proj, v_proj)
      expect forward called
    }
  }

  each e in 0..4 {
    seat expert : qkv_pack version 1 at model.layers.{2 * e + 1}.mlp {
      dims { K = K, N[0] = Nq, N[1] = Nq }
      siblings prove (shared_input, call_order) {
        w[0] = expert(experts.gate_up_proj, 0) : in_out,
        w[1] = transpose(experts.down_proj) : in_out
      }
      point x_in = input of experts
    }
  }
}
