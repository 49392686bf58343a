frt 1

binding flashrt_pi05 {
  """The decoder_ffn of flash-rt's binding pi05."""
  status imported "the norm makes scale, shift and gate inside itself: no module of the host gives them to the region"
  evidence "Imported from flash-rt, bindings/pi05.yaml, sha256 ee91cd2c72fbf506."
  host lerobot ">=0.5,<0.6"
  dims { D = 1024, F = 4096, L = 18 }

  each i in 0..L {
    seat ffn : decoder_ffn.mlp version 1 at model.paligemma_with_expert.gemma_expert.model.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = gelu
      variant norm_weight_mode = offset
      variant conditioning = ada_ln
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      boundary at model.paligemma_with_expert.gemma_expert.model.layers.{i} {
        slot w_norm = zeros
      }
    }

    seat cond : adaln_producer version 1 at model.paligemma_with_expert.gemma_expert.model.layers.{i}.post_attention_layernorm {
      dims { D = D }
      variant style = scale_shift_gate
      variant style_order = scale_first
      slot style_w = dense.weight : out_in
      slot style_b = dense.bias
    }
  }

  export flash_rt {
    weights_map = "transformers",
    weights_root = "model",
    boundary_dtype = "bf16",
    m_profile[denoise] = "small denoise",
    conditioning = "time_embedding"
  }
}
