frt 1

impl bf16 for attention_core version 1 {
  """Operands and output in bfloat16, scores and softmax in float32.

  torch's fused attention keeps the scores in float32 as well; it rounds the weights of a
  row to bfloat16 before they meet the values.

  The Hub's kernels are handed no mask, so they serve hosts without one and those whose mask is
  answered by packing keys. Its attention by strided products (masked-mha-runtime) has no axis
  for a batch, and how large a batch is is the caller's: there is no rung for it.
  """
  status draft

  numerics { acc f32, store q_in bf16, store k_in bf16, store v_in bf16, out bf16 }
  admits q_in { bf16, fp16, f32 }

  rung hub "flashrt/fa2-seqused-runtime" version 1 {
    envelope { D % 8 == 0, D <= 256, H % Hkv == 0 }
    call {
      let q4 = transpose(bf16(q), 1, 2)
      let k4 = transpose(bf16(k), 1, 2)
      let (room, sums) = allocate_outputs(q4)
      let parts = allocate_workspace(q4, k4)
      yield y = forward_static(
        q4,
        k4,
        transpose(bf16(v), 1, 2),
        out = updates(room),
        softmax_lse = updates(sums),
        workspace = updates(parts),
        softmax_scale = match scaling { head_dim => D ** -0.5, given => scale },
        causal = false
      )
    }
  }
  rung hub "flashrt/fa4-cute-runtime" version 1 {
    envelope { D in (64, 96, 128), H % Hkv == 0 }
    call {
      let room = zeros((B, Sq, H, D), bf16)
      yield y = forward_static(
        transpose(bf16(q), 1, 2),
        transpose(bf16(k), 1, 2),
        transpose(bf16(v), 1, 2),
        updates(room),
        softmax_scale = match scaling { head_dim => D ** -0.5, given => scale },
        causal = false
      )
    }
  }
  rung torch { lower softmax to sdpa }
  rung emulate
}
