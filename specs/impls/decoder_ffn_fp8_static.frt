frt 1

impl fp8_static for decoder_ffn.mlp version 1 {
  """Static per-tensor FP8 (E4M3).

  Weights are packed once, gate and up under one joint scale; activations are
  scaled by what calibration measured.
  """
  status draft

  pack  gate_up = quantize(cat(w_gate.T, w_up.T), fp8_e4m3, per tensor)
  pack  down    = quantize(w_down.T, fp8_e4m3, per tensor)
  scale in_s    = static(x_after_norm)
  scale hid_s   = static(act_after_mul)
  numerics { acc f32, store g bf16, store u bf16, out bf16 }
  admits x_after_norm { bf16, fp16, f32 }

  rung local "frt-dense" version 1 {
    envelope { D % 16 == 0, F % 16 == 0 }
    call match activation {
      gelu => fp8_geglu,
      silu => fp8_swiglu
    } (bf16(x_after_norm), gate_up, down, in_s, gate_up.scale, hid_s, down.scale)
  }
  rung hub "flashrt/flashrt-fp8-swiglu-ffn" version 1 {
    envelope { 512 <= D <= 16384, 1024 <= F <= 16384, D % 16 == 0, F % 16 == 0 }
    call match activation {
      gelu => bf16_fp8_geglu_mlp_bf16,
      silu => bf16_fp8_swiglu_mlp_bf16
    } (bf16(x_after_norm), gate_up, down, in_s, gate_up.scale, hid_s, down.scale)
  }
  rung torch {
    envelope { D % 16 == 0, F % 16 == 0 }
    lower matmul to scaled_mm
  }
  rung emulate
}
