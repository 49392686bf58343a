frt 1

impl bf16 for qk_norm_rope version 1 {
  """Norm and rotation in float32, written in bfloat16 once."""
  status draft

  numerics { acc f32, out bf16 }
  admits q { bf16, fp16, f32 }

  rung torch {
    lower rms_norm to native_rms_norm
    lower rope_half to addcmul_rope
    lower rope_interleaved to addcmul_rope
  }
  rung emulate
}
