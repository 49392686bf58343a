frt 1

impl bf16 version 1 for qkv_rope version 2 {
  """Rotation in float32, written in bfloat16 once."""
  status draft

  numerics { acc f32, out bf16 }
  admits q { bf16, fp16, f32 }

  rung torch { lower rope_half to addcmul_rope }
  rung emulate
}
