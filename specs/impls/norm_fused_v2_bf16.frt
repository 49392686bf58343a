frt 1

impl bf16 version 1 for norm_fused version 2 {
  """A norm written in bfloat16 for a host that keeps its norms in float32.

  The statistics stay in float32; only what is stored is narrower. A host in bfloat16 stores
  as much already, so this form has nothing to give it.
  """
  status draft

  numerics { acc f32, out bf16 }
  admits x_in { f32 }

  rung torch {
    lower layer_norm to native_layer_norm
    lower rms_norm to native_rms_norm
  }
  rung emulate
}
