frt 1

impl w4a16_int4 for decoder_ffn.mlp version 1 {
  """INT4 weights in groups of 64; activations stay in bfloat16.

  The torch rung holds the codes only and reads them back at each call: it saves memory, not
  time.
  """
  status draft

  pack gate_up = quantize(cat(w_gate.T, w_up.T), int4, per group 64)
  pack down    = quantize(w_down.T, int4, per group 64)
  numerics {
    acc f32,
    store x_after_norm bf16,
    store g bf16,
    store u bf16,
    store act_after_mul bf16,
    out bf16
  }
  admits x_after_norm { bf16, fp16, f32 }

  band M in 1..=8 {
    rung local "frt-dense" version 1 {
      call match activation {
        gelu => w4a16_geglu,
        silu => w4a16_swiglu
      } (bf16(x_after_norm), gate_up, gate_up.scale, down, down.scale)
    }
    rung torch { lower matmul to bf16_mm }
    rung emulate
  } otherwise host

  gate boundary on synthetic { cosine >= 0.995 }
  gate seam     on synthetic { cosine >= 0.97 }
  evidence """
  On random data a product with INT4 weights in groups of 64 has a cosine of 0.994 to the exact
  one: fifteen codes over the largest of a group are off by a ninth of a value, root mean square. A
  host's own data and its residual stream are judged at attach, by the structure's bounds.
  """
}
