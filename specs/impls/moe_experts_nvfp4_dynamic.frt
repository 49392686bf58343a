frt 1

impl nvfp4_dynamic for moe_experts.experts version 1 {
  """NVFP4 on both sides of the experts' products.

  Routing stays the host's and runs as it is; what the chosen experts give is added in float32
  and rounded once.
  """
  status draft

  pack  gate_up = quantize(w_gate_up.T, nvfp4, per block 16)
  pack  down    = quantize(w_down.T, nvfp4, per block 16)
  scale in_s    = dynamic(x_in, per block 16)
  scale hid_s   = dynamic(act_after_mul, per block 16)
  numerics { acc f32, store h bf16, store o bf16, out bf16 }
  admits x_in { bf16, fp16, f32 }

  rung hub "flashrt/grouped-moe-gemv" version 2 {
    envelope { M <= 16, D % 64 == 0, F % 64 == 0 }
    prepare gate_up_sf = swizzled(gate_up.scale)
    prepare down_sf = swizzled(down.scale)
    prepare gate_up_alpha = flatten(gate_up.tensor_scale, 3)
    prepare down_alpha = flatten(down.tensor_scale, 3)
    call {
      let who = int32(flatten(chosen, 2))
      let x16 = bf16(repeat(x_in, K, axis = 0))
      let h = grouped_w4a4_gemv_from_bf16(x16, gate_up, gate_up_sf, gate_up_alpha, who)
      let g = f32(chunk(h, 2, axis = -1)[0])
      let u = f32(chunk(h, 2, axis = -1)[1])
      let act = match activation { silu => silu(g), gelu => gelu_tanh(g) }
      let o = grouped_w4a4_gemv_from_bf16(bf16(act * u), down, down_sf, down_alpha, who)
      let each_o = unflatten(f32(o), (M, K), axis = 0)
      yield routed = bf16(sum(each_o * unsqueeze(f32(route), -1), axis = -2))
    }
  }
  rung torch { lower contract to bf16_mm }
  rung emulate

  gate boundary on synthetic { cosine >= 0.96 }
  gate seam     on synthetic { cosine >= 0.96 }
  evidence """
  On random data the product of two tensors of NVFP4 codes has a cosine of 0.991 to the exact one:
  codes are off by a tenth of a value, root mean square, on either side. A host's own data and its
  residual stream are judged at attach, by the structure's bounds.
  """
}
