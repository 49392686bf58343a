frt 1

structure adaln_producer version 1 {
  """An adaptive norm: a projection of a conditioning vector scales and shifts its output.

  In some blocks the projection also gives a gate for the residual. A producer inside a
  block can take the sum that is pending from the sublayer before it, and norm that.
  """
  status draft

  dim M, D, C
  param eps = 1e-6

  in  x            [rows M, D] : host
  in  cond         [1, C] : host
  in  residual     [rows M, D] : host  when epilogue is gate_residual
  in  branch_gate? [1, D] : host       when epilogue is gate_residual
  out y            [rows M, D] : host
  out gate         [1, D] : host       when style is scale_shift_gate
  out stream       [rows M, D] : host  when epilogue is gate_residual

  slot style_w  [C, 3 * D]  when style is scale_shift_gate
  slot style_b? [3 * D]     when style is scale_shift_gate
  slot pair_w   [C, 2 * D]  when style is scale_shift
  slot pair_b?  [2 * D]     when style is scale_shift
  slot norm_w?  [D]

  variant norm            { rms, layer }
  variant style           { scale_shift_gate, scale_shift }
  # Which of the two comes first in the projection's output.
  variant style_order     { scale_first, shift_first }
  variant cond_activation { none, silu }
  variant epilogue        { none, gate_residual }

  reference {
    point cond_in content = cond
    let c = f32(match cond_activation { none => cond_in, silu => silu(cond_in) })
    let s = c @ f32(match style { scale_shift_gate => style_w, scale_shift => pair_w })
    let s = s + f32(style_b)                     when present style_b
    let s = s + f32(pair_b)                      when present pair_b
    let first = match style { scale_shift_gate => chunk(s, 3)[0], scale_shift => chunk(s, 2)[0] }
    let second = match style { scale_shift_gate => chunk(s, 3)[1], scale_shift => chunk(s, 2)[1] }
    let scale = match style_order { scale_first => first, shift_first => second }
    let shift = match style_order { scale_first => second, shift_first => first }
    let branch = f32(x)
    let branch = branch * f32(branch_gate)       when present branch_gate
    let total = cast(f32(residual) + branch, x)  when epilogue is gate_residual otherwise x
    point x_in = total
    let n = match norm { rms => rms_norm(f32(x_in), eps), layer => layer_norm(f32(x_in), eps) }
    let n = n * f32(norm_w)                      when present norm_w
    yield y = cast(n * (1 + scale) + shift, x)
    yield gate = cast(chunk(s, 3)[2], x)         when style is scale_shift_gate
    yield stream = x_in                          when epilogue is gate_residual
  }

  # The gate comes with or without an axis of tokens; the norm is a module inside, or inline.
  discover {
    role style : linear (style_w, style_b)
    role inner : layer_norm gives eps
    called cond (cond, emb, temb, embedded_timestep, conditioning_embedding)
    variant style = scale_shift_gate
    variant norm = layer
    variant epilogue = none
    point cond_in = arg cond
    point x_in    = input
    boundary at seat { x = input, cond = arg cond, y = output[0], gate = output[1] }
  }

  discover {
    role style : linear (style_w, style_b)
    called cond (cond, emb, temb, embedded_timestep, conditioning_embedding)
    variant style = scale_shift_gate
    variant norm = rms
    variant epilogue = none
    point cond_in = arg cond
    point x_in    = input
    boundary at seat { x = input, cond = arg cond, y = output[0], gate = output[1] }
  }

  discover {
    role style : linear (style_w, style_b)
    role inner : layer_norm gives eps
    called cond (cond, emb, temb, embedded_timestep, conditioning_embedding)
    variant style = scale_shift_gate
    variant norm = layer
    variant epilogue = none
    point cond_in = arg cond
    point x_in    = input
    boundary at seat { x = input, cond = arg cond, y = output[0], gate = output[1] : one_token }
  }

  discover {
    role style : linear (style_w, style_b)
    called cond (cond, emb, temb, embedded_timestep, conditioning_embedding)
    variant style = scale_shift_gate
    variant norm = rms
    variant epilogue = none
    point cond_in = arg cond
    point x_in    = input
    boundary at seat { x = input, cond = arg cond, y = output[0], gate = output[1] : one_token }
  }

  discover {
    role style : linear (pair_w, pair_b)
    role inner : layer_norm gives eps
    called cond (cond, emb, temb, embedded_timestep, conditioning_embedding)
    variant style = scale_shift
    variant norm = layer
    variant epilogue = none
    point cond_in = arg cond
    point x_in    = input
    boundary at seat { x = input, cond = arg cond, y = output }
  }

  # A table of styles holds few rows, and a fingerprint has to tell them apart.
  require for step_table { steps(cond_in) <= 64, fingerprint_margin(cond_in) >= 0.001 }

  gate boundary on real_distribution { cosine >= 0.999, max_abs, p99_abs }
  gate latency  per shape { net_positive including boundary, against (torch_compile, vendor) }
  evidence """
  Producers on one stream can share one buffer of styles, written by the one that the host calls
  first. Measured by flash-rt on pi05: 36 producers on one stream, 0.419 ms less a tick. A fused
  norm pays only where it feeds a projection too: 19 sites in bf16 cost 1.9 % more than the table
  alone.
  """
}
