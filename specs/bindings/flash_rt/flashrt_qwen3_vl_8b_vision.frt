frt 1

binding flashrt_qwen3_vl_8b_vision {
  """The vision_ffn of flash-rt's binding qwen3_vl_8b_vision."""
  status draft
  evidence "Imported from flash-rt, bindings/qwen3_vl_8b_vision.yaml, sha256 f0be92e6e926d452."
  host transformers ">=5.13,<6" class Qwen3VLForConditionalGeneration
  dims { D = 1152, F = 4304, L = 27 }

  each i in 0..L {
    seat ffn : vision_ffn.mlp version 2 at model.visual.blocks.{i}.mlp {
      dims { D = D, F = F }
      variant activation = gelu
      variant norm_affine = learned
      slot w_fc1 = linear_fc1.weight : out_in
      slot b_fc1 = linear_fc1.bias
      slot w_fc2 = linear_fc2.weight : out_in
      slot b_fc2 = linear_fc2.bias
      point x_after_norm     = input
      point hidden_after_act = input of linear_fc2
      boundary at model.visual.blocks.{i} {
        x = input of norm2,
        y = output,
        slot w_norm = norm2.weight,
        slot b_norm = norm2.bias
      }
      expect class (Qwen3VLVisionMLP)
      expect activation gelu_tanh of act_fn
      expect returns tensor
    }
  }

  export flash_rt {
    boundary_dtype = "bf16",
    versions[transformers] = ">=5.0,<6",
    m_profile[encode] = "medium vision_encode"
  }
}
