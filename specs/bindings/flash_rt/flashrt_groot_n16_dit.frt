frt 1

binding flashrt_groot_n16_dit {
  """The vision_ffn of flash-rt's binding groot_n16_dit."""
  status imported "isaac_gr00t is on no package index: nothing of it could be looked at"
  evidence "Imported from flash-rt, bindings/groot_n16_dit.yaml, sha256 d3e8dcd382716579."
  host isaac_gr00t "n1.6"
  dims { D = 1536, F = 6144, L = 32 }

  each i in 0..L {
    seat ffn : vision_ffn.mlp version 2 at action_head.model.transformer_blocks.{i}.ff {
      dims { D = D, F = F }
      variant activation = gelu
      slot w_fc1 = net.0.proj.weight : out_in
      slot b_fc1 = net.0.proj.bias
      slot w_fc2 = net.2.weight : out_in
      slot b_fc2 = net.2.bias
      boundary at action_head.model.transformer_blocks.{i} {
        slot w_norm = ones,
        slot b_norm = zeros
      }
    }
  }

  export flash_rt {
    boundary_dtype = "bf16",
    m_profile[denoise] = "small denoise"
  }
}
