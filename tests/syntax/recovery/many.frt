frt 1
structure a version 1 {
  dim M, D,
  in x [rows M, D] : host
  }
  slot [D, F]
  slot w_gate [D, F
  reference
    let h = rms_norm x, eps)
    if x
    yield y = 'x'
  }
  pack a = b
  gate latency per shape { net_positive including boundary, against (a, b)
}

binding qwen3 {
  host transformers ">=5.0,<6 class Qwen3ForCausalLM
  dims { D = config.hidden_size; F = config.intermediate_size, L = config.x }
  each i in 0..L
    seat ffn decoder_ffn.mlp version 1 at model.layers.{i}.mlp {
      variant activation = match config.hidden_act { "silu" => silu, else => refuse 
      slot w_gate = gate_proj.weight out_in
      slot w_gate : gate_proj.weight : out_in
      point act_after_mul = input down_proj
      boundary none
      boundary at model.layers.{i} { x = input of p y = output, slot w_norm = p.weight }
      expect class
    }
  }
