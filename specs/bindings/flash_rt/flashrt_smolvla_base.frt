frt 1

binding flashrt_smolvla_base {
  """The decoder_ffn of flash-rt's binding smolvla_base."""
  status imported "SmolVLA runs the norm and the MLP of a layer one by one: no module of it gives the region's y"
  evidence "Imported from flash-rt, bindings/smolvla_base.yaml, sha256 fb31dbf8f786a823."
  host lerobot ">=0.5,<0.6"
  dims { D = 960, F = 2560, L = 16 }

  each i in 0..L {
    seat ffn : decoder_ffn.mlp version 1 at model.vlm_with_expert.vlm.model.text_model.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = silu
      variant norm_weight_mode = direct
      variant conditioning = none
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      boundary at model.vlm_with_expert.vlm.model.text_model.layers.{i} {
        slot w_norm = post_attention_layernorm.weight
      }
    }
  }

  export flash_rt {
    boundary_dtype = "f32",
    m_profile[prefix] = "medium prefill"
  }
}
