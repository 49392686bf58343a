frt 1

scheme none {
  """Quantisation off. Structures that fuse without quantising still bind."""
  status draft

  at norm_fused version 1 { x_in: none } use bf16
  otherwise keep "quantisation is off (scheme none)"
}
