frt 1

impl bf16 for norm_fused version 1 {
  """LayerNorm written in bfloat16 for a host that keeps its norms in float32.

  The statistics stay in float32; only what is stored is narrower.
  """
  status draft

  numerics { acc f32, out bf16 }
  admits x_in { f32 }

  rung torch { lower layer_norm to native_layer_norm }
  rung emulate
}
