frt 1

structure adaln_producer version 1 {
  """An adaptive norm driven by a conditioning vector that takes few values.

  A projection of the conditioning gives scale, shift and, in some blocks, a gate for the
  residual. Over one tick the conditioning runs through a fixed schedule, so its
  projections can be kept as a table of steps.
  """
  status draft

  dim M, D, C
  param eps = 1e-6

  in  x    [rows M, D] : host
  in  cond [1, C] : host
  out y    [rows M, D] : host
  out gate [1, D] : host  when style is scale_shift_gate

  slot style_w  [C, 3 * D]  when style is scale_shift_gate
  slot style_b? [3 * D]     when style is scale_shift_gate
  slot pair_w   [C, 2 * D]  when style is scale_shift
  slot pair_b?  [2 * D]     when style is scale_shift
  slot norm_w?  [D]

  variant norm  { rms, layer }
  variant style { scale_shift_gate, scale_shift }
  combinations { all except (norm is rms and style is scale_shift) }

  reference {
    point step content = cond
    let w = match style { scale_shift_gate => style_w, scale_shift => pair_w }
    let s = f32(step) @ f32(w)
    let s = s + f32(style_b)              when present style_b
    let s = s + f32(pair_b)               when present pair_b
    let n = match norm { rms => rms_norm(f32(x), eps), layer => layer_norm(f32(x), eps) }
    let n = n * f32(norm_w)               when present norm_w
    let scale = match style { scale_shift_gate => chunk(s, 3)[0], scale_shift => chunk(s, 2)[0] }
    let shift = match style { scale_shift_gate => chunk(s, 3)[1], scale_shift => chunk(s, 2)[1] }
    point modulated = n * (1 + scale) + shift
    yield y = cast(modulated, x)
    yield gate = cast(chunk(s, 3)[2], x)  when style is scale_shift_gate
  }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, vendor) }
  qualify for step_table { 2 * C >= D }
}

impl plain for adaln_producer version 1 {
  """The norm as it is written; the projections of known steps may come from a table."""
  numerics { acc f32, store s f32, out bf16 }
  admits x { bf16, f32 }
  rung emulate
}

impl fused_fp8 for adaln_producer version 1 {
  """The whole norm in one kernel."""
  only norm (layer)
  admits x { bf16, f32 }
  numerics { acc f32, out bf16 }
  require { D % 16 == 0 }

  band M in 1..=256 {
    rung hub "flashrt/adaptive-layernorm-producers" version 1 {
      envelope { 256 <= D <= 8192, D % 128 == 0 }
      call match style { scale_shift_gate => layer_to_fp8_gated, scale_shift => layer_to_fp8 } (x, cond)
    }
    rung torch { lower layer_norm to native_layer_norm }
  } otherwise host
  rung emulate
}

binding pi05_expert {
  """The action expert of Pi0.5: one conditioning stream feeds every norm."""
  status imported "paths and rows were read from a running host by others"
  host lerobot ">=0.5,<0.6" class (PI05Policy, PI05Pytorch)
  dims { D = config.expert_width, C = config.expert_width, L = config.expert_depth }

  each i in 0..L {
    seat norm_in : adaln_producer version 1 at model.gemma_expert.model.layers.{i}.input_layernorm {
      dims { D = D, C = C }
      variant norm = rms
      variant style = scale_shift_gate
      slot style_w = dense.weight : out_in
      slot style_b = dense.bias
      slot norm_w  = ones
      point step      = arg cond
      point modulated = output
      boundary at model.gemma_expert.model.layers.{i}.input_layernorm {
        x = input,
        cond = arg cond,
        y = output,
        gate = output
      }
      form swap
      expect class (AdaptiveRmsNorm)
      expect call keyword
    }
    seat qkv : qkv_pack version 1 at model.gemma_expert.model.layers.{i}.self_attn {
      dims { K = D, N[0] = 8 * 256, N[1] = 256, N[2] = 256 }
      siblings prove (shared_input, call_order) {
        w[0] = q_proj.weight : out_in,
        w[1] = k_proj.weight : out_in,
        w[2] = v_proj.weight : out_in
      }
      point x_in = input of q_proj
    }
    chain norm_in.y -> qkv.x wire fp8_e4m3 require (same_storage, exclusive_consumer)
    group style over (norm_in) writer first_called require (same_stream, same_width, same_rows)
  }
}
