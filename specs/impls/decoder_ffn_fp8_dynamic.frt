frt 1

impl fp8_dynamic for decoder_ffn.mlp version 1 {
  """FP8 (E4M3) without calibration: a scale for each row of an activation, computed at
  each call, and one for each output channel of a weight.
  """
  status draft

  pack  gate_up = quantize(cat(w_gate.T, w_up.T), fp8_e4m3, per channel)
  pack  down    = quantize(w_down.T, fp8_e4m3, per channel)
  scale in_s    = dynamic(x_after_norm, per row)
  scale hid_s   = dynamic(act_after_mul, per row)
  numerics { acc f32, store g bf16, store u bf16, out bf16 }
  admits x_after_norm { bf16, fp16, f32 }

  rung torch {
    envelope { D % 16 == 0, F % 16 == 0 }
    lower matmul to scaled_mm
  }
  rung emulate
}
