frt 1

binding gemma3 {
  """Gemma 3 text decoders as transformers builds them.

  The host norms the feed-forward output before the residual, so only the MLP
  seam sits on it.
  """
  status draft
  host transformers ">=5.0,<6" class Gemma3ForCausalLM

  dims {
    D = config.hidden_size,
    F = config.intermediate_size,
    L = config.num_hidden_layers
  }

  each i in 0..L {
    seat ffn : decoder_ffn.mlp version 1 at model.layers.{i}.mlp {
      dims { D = D, F = F }
      variant activation = match config.hidden_activation {
        "gelu_pytorch_tanh" => gelu,
        "silu" => silu,
        else => refuse
      }
      variant norm_weight_mode = offset
      variant norm_rounding = after_weight
      variant conditioning = none
      param eps = config.rms_norm_eps
      slot w_gate = gate_proj.weight : out_in
      slot w_up   = up_proj.weight : out_in
      slot w_down = down_proj.weight : out_in
      point x_after_norm  = input
      point act_after_mul = input of down_proj
      boundary none "this host norms the FFN's output before adding the residual"
      expect class (Gemma3MLP)
      expect bias none of (gate_proj, up_proj, down_proj)
      expect returns tensor
    }
  }
}
