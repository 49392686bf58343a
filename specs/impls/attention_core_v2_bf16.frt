frt 1

impl bf16 version 1 for attention_core version 2 {
  """Operands and output in bfloat16, scores and softmax in float32.

  torch's fused attention keeps the scores in float32 as well; it rounds the weights of a
  row to bfloat16 before they meet the values.
  """
  status draft

  numerics { acc f32, store q_in bf16, store k_in bf16, store v_in bf16, out bf16 }
  admits q_in { bf16, fp16, f32 }

  rung torch { lower softmax to sdpa }
  rung emulate
}
