frt 1

impl bf16 for adaln_producer version 1 {
  """Norm and modulation in float32, written in bfloat16 once.

  The Hub's kernel takes the style in bfloat16, with a third part for the gate: where a host
  has none, it is handed the scale once more and that copy is dropped. A modulated LayerNorm
  leaves the Hub's kernels in FP8 only, so that norm has no such rung here.
  """
  status draft

  numerics { acc f32, out bf16 }
  admits x { bf16, fp16, f32 }

  rung hub "flashrt/flashrt-adaptive-norms" version 1 {
    only norm (rms)
    envelope { D % 2 == 0 }
    prepare weight = bf16(norm_w) when present norm_w otherwise ones((D), bf16)
    call {
      let styled = match style {
        scale_shift_gate => cat(scale, shift, gate, axis = -1),
        scale_shift => cat(scale, shift, scale, axis = -1)
      }
      let (normed, _) = ada_rms_norm_style_bf16(bf16(x_in), weight, bf16(styled), eps = eps)
      yield y = normed
      yield gate = gate when style is scale_shift_gate
      yield stream = stream when epilogue is gate_residual
    }
  }
  rung torch {
    lower rms_norm to native_rms_norm
    lower layer_norm to native_layer_norm
  }
  rung emulate
}
