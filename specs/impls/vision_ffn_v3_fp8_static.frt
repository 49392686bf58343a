frt 1

impl fp8_static version 1 for vision_ffn.mlp version 3 {
  """Static per-tensor FP8 (E4M3).

  Both products are of codes; biases are added and the gelu is taken in between.
  """
  status draft

  pack  fc1   = quantize(w_fc1.T, fp8_e4m3, per tensor)
  pack  fc2   = quantize(w_fc2.T, fp8_e4m3, per tensor)
  scale in_s  = static(x_after_norm)
  scale hid_s = static(hidden_after_act)
  numerics { acc f32, store a bf16, out bf16 }
  admits x_after_norm { bf16, fp16, f32 }

  rung local "frt-dense" version 1 {
    envelope { D % 16 == 0, F % 16 == 0 }
    only activation (gelu_tanh)
    only bias (add)
    call fp8_gelu_ffn (
      bf16(x_after_norm),
      fc1,
      bf16(b_fc1),
      fc2,
      bf16(b_fc2),
      in_s,
      fc1.scale,
      hid_s,
      fc2.scale
    )
  }
  rung hub "flashrt/flashrt-fp8-ffn" version 1 {
    envelope { D % 16 == 0, F % 16 == 0 }
    only activation (gelu_tanh)
    prepare up_b16 = bf16(b_fc1) when bias is add otherwise zeros((F), bf16)
    prepare down_b16 = bf16(b_fc2) when bias is add otherwise zeros((D), bf16)
    call {
      yield o = bf16_fp8_gelu_mlp_bf16(
        bf16(x_after_norm),
        fc1,
        up_b16,
        fc2,
        down_b16,
        in_s,
        fc1.scale,
        hid_s,
        fc2.scale
      )
    }
  }
  rung torch {
    envelope { D % 16 == 0, F % 16 == 0 }
    lower matmul to scaled_mm
  }
  rung emulate
}
