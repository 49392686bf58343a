frt 1

impl fp8_wire version 1 for norm_fused version 2 {
  """A norm whose output goes to the projections behind it in FP8, under their scale.

  It is rounded to the host's dtype first, as on a host: a chain that is joined changes no
  bit of what its consumer computes. Without the chain there is nothing to gain here.

  The Hub has kernels that write the codes themselves. A chain hands its producer no scale, the
  codes are made behind it, so there is no rung for them here.
  """
  status draft

  form wire (fp8_e4m3)
  numerics { acc f32, out f32 }
  admits x_in { bf16, fp16, f32 }

  rung torch {
    lower layer_norm to native_layer_norm
    lower rms_norm to native_rms_norm
  }
  rung emulate
}
