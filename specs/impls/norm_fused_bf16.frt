frt 1

impl bf16 for norm_fused version 1 {
  """LayerNorm written in bfloat16 for a host that keeps its norms in float32.

  The statistics stay in float32; only what is stored is narrower. The Hub's kernel reads its
  input in bfloat16 too.
  """
  status draft

  numerics { acc f32, out bf16 }
  admits x_in { f32 }

  rung hub "flashrt/flashrt-residual-norm-quant" version 1 {
    envelope { D % 2 == 0 }
    prepare weight = bf16(w)
    prepare bias = bf16(b)
    call { yield y = layer_norm_bf16(bf16(x), weight, bias, eps = eps) }
  }
  rung torch { lower layer_norm to native_layer_norm }
  rung emulate
}
