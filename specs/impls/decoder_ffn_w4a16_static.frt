frt 1

impl w4a16_static for decoder_ffn.mlp version 1 {
  """NVFP4 weights; activations stay in bfloat16.

  The torch rung holds the codes only and reads them back at each call: it saves memory, not
  time.
  """
  status draft

  pack gate_up = quantize(cat(w_gate.T, w_up.T), nvfp4, per block 16)
  pack down    = quantize(w_down.T, nvfp4, per block 16)
  numerics {
    acc f32,
    store x_after_norm bf16,
    store g bf16,
    store u bf16,
    store act_after_mul bf16,
    out bf16
  }
  admits x_after_norm { bf16, fp16, f32 }

  band M in 1..=3 {
    rung hub "flashrt/weight-only-ffn" version 1 {
      envelope { D % 64 == 0, F % 64 == 0 }
      # The kernel has no scale of a whole tensor: x takes the one of gate and up, o that of down.
      prepare gate_up_t = number(gate_up.tensor_scale)
      prepare down_t = number(down.tensor_scale)
      prepare (gate_up_w4, gate_up_sfb) = quantize_w4_weight_bf16(bf16(values(gate_up) / gate_up_t))
      prepare (down_w4, down_sfb) = quantize_w4_weight_bf16(bf16(values(down) / down_t))
      call {
        let x = bf16(f32(bf16(x_after_norm)) * gate_up_t)
        let h = match activation {
          gelu => w4a16_geglu_ffn_bf16(x, gate_up_w4, gate_up_sfb, down_w4, down_sfb),
          silu => w4a16_swiglu_ffn_bf16(x, gate_up_w4, gate_up_sfb, down_w4, down_sfb)
        }
        yield o = bf16(f32(h) * down_t)
      }
    }
    rung torch { lower matmul to bf16_mm }
    rung emulate
  } otherwise host

  gate boundary on synthetic { cosine >= 0.995 }
  gate seam     on synthetic { cosine >= 0.975 }
  evidence """
  On random data a product with NVFP4 weights has a cosine of 0.9955 to the exact one: codes are
  off by a tenth of a value, root mean square. A host's own data and its residual stream are judged
  at attach, by the structure's bounds.
  """
}
