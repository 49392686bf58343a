frt 1

impl w8a16_static for decoder_ffn.mlp version 1 {
  """INT8 weights, one scale an output channel; activations stay in bfloat16.

  The torch rung holds the codes only and reads them back at each call: it saves memory, not
  time.
  """
  status draft

  pack gate_up = quantize(cat(w_gate.T, w_up.T), int8, per channel)
  pack down    = quantize(w_down.T, int8, per channel)
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
        gelu => w8a16_geglu,
        silu => w8a16_swiglu
      } (bf16(x_after_norm), gate_up, gate_up.scale, down, down.scale)
    }
    rung hub "flashrt/weight-only-ffn" version 1 {
      envelope { D % 64 == 0, F % 64 == 0 }
      call {
        let x = bf16(x_after_norm)
        let gate_up_s = flatten(gate_up.scale, 2)
        let down_s = flatten(down.scale, 2)
        yield o = match activation {
          gelu => w8a16_geglu_ffn_bf16(x, gate_up, gate_up_s, down, down_s),
          silu => w8a16_swiglu_ffn_bf16(x, gate_up, gate_up_s, down, down_s)
        }
      }
    }
    rung torch { lower matmul to bf16_mm }
    rung emulate
  } otherwise host
}
