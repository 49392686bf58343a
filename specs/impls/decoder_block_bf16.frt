frt 1

impl bf16 version 1 for decoder_block version 1 {
  """The order of a transformer block and its residuals, in float32 between the parts.

  Norms, attention and feed-forward part are handed in: they are the host's modules, or what
  stands in their place. What is added between them is rounded once, as the host holds it.
  """
  status draft

  numerics { acc f32, store r bf16, out bf16 }
  admits x { bf16 }

  rung emulate
}
