frt 1

impl bf16 version 1 for adaln_producer version 2 {
  """Norm and modulation in float32, written in bfloat16 once.

  The Hub's kernel takes the style in bfloat16. A modulated LayerNorm leaves the Hub's kernels
  in FP8 only, so that norm has no such rung here.
  """
  status draft

  numerics { acc f32, out bf16 }
  admits x { bf16, fp16, f32 }

  rung hub "flashrt/flashrt-adaptive-norms" version 1 {
    only norm (rms)
    envelope { D % 2 == 0 }
    prepare weight = bf16(norm_w) when present norm_w otherwise ones((D), bf16)
    call {
      let styled = cat(scale, shift, gate, axis = -1)
      let (normed, _) = ada_rms_norm_style_bf16(bf16(x_in), weight, bf16(styled), eps = eps)
      yield y = normed
      yield gate = gate
    }
  }
  rung torch {
    lower layer_norm to native_layer_norm
    lower rms_norm to native_rms_norm
  }
  rung emulate
}
