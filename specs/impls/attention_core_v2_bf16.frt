frt 1

impl bf16 version 1 for attention_core version 2 {
  """Operands and output in bfloat16, scores and softmax in float32.

  torch's product of bfloat16 rounds the scores, so there is no torch rung out of products.
  """
  status draft

  numerics { acc f32, store q_in bf16, store k_in bf16, store v_in bf16, out bf16 }
  admits q_in { bf16, fp16, f32 }

  rung emulate
}
