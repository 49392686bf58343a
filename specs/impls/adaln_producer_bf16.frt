frt 1

impl bf16 for adaln_producer version 1 {
  """Norm and modulation in float32, written in bfloat16 once."""
  status draft

  numerics { acc f32, out bf16 }
  admits x { bf16, fp16, f32 }

  rung emulate
}
