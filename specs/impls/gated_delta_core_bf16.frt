frt 1

impl bf16 for gated_delta_core version 1 {
  """The recurrence and its state in float32; the output is written in bfloat16.

  torch has no op for a recurrence. Its torch rung takes 64 steps as one triangular system,
  and goes from state to state by products. The Hub's kernel takes one step of
  heads of 128; how many steps a call has is the caller's, so there is no rung for it here.
  """
  status draft

  numerics { acc f32, out bf16 }
  admits q { bf16, fp16, f32 }

  rung torch { lower contract to chunked_delta }
  rung emulate
}
