frt 1

impl bf16 version 1 for adaln_producer version 2 {
  """Norm and modulation in float32, written in bfloat16 once."""
  status draft

  numerics { acc f32, out bf16 }
  admits x { bf16, fp16, f32 }

  rung torch {
    lower layer_norm to native_layer_norm
    lower rms_norm to native_rms_norm
  }
  rung emulate
}
