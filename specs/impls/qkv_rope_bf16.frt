frt 1

impl bf16 for qkv_rope version 1 {
  """Bias, split and rotation in float32, written in bfloat16 once."""
  status draft

  numerics { acc f32, out bf16 }
  admits packed { bf16, fp16, f32 }

  rung torch { lower rope_half to addcmul_rope }
  rung emulate
}
