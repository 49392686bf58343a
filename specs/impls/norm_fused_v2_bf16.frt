frt 1

impl bf16 version 1 for norm_fused version 2 {
  """A norm written in bfloat16 for a host that keeps its norms in float32.

  The statistics stay in float32; only what is stored is narrower. A host in bfloat16 stores
  as much already, so this form has nothing to give it. The Hub's kernel reads its input in
  bfloat16 too; the Hub has none that writes a mean square norm in bfloat16.
  """
  status draft

  numerics { acc f32, out bf16 }
  admits x_in { f32 }

  rung hub "flashrt/flashrt-residual-norm-quant" version 1 {
    only norm (layer)
    envelope { D % 2 == 0 }
    prepare weight = bf16(w) when present w otherwise ones((D), bf16)
    prepare bias = bf16(b) when present b otherwise zeros((D), bf16)
    call { yield y = layer_norm_bf16(bf16(x), weight, bias, eps = eps) }
  }
  rung torch {
    lower layer_norm to native_layer_norm
    lower rms_norm to native_rms_norm
  }
  rung emulate
}
