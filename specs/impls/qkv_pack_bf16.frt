frt 1

impl bf16 for qkv_pack version 1 {
  """bfloat16: every sibling's weight in one pack, one product; nothing is quantised."""
  status draft

  pack weight = bf16(cat(each i => w[i].T))
  numerics { acc f32, store x_in bf16, out bf16 }
  admits x_in { bf16, fp16, f32 }

  rung torch { lower matmul to bf16_mm }
  rung emulate
}
