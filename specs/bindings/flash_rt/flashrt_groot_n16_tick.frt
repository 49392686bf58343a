frt 1

binding flashrt_groot_n16_tick {
  """The vla_tick_pipeline of flash-rt's binding groot_n16_tick."""
  status imported "isaac_gr00t is on no package index: nothing of it could be looked at"
  evidence "Imported from flash-rt, bindings/groot_n16_tick.yaml, sha256 e9c5ab000fcb678a."
  host isaac_gr00t "n1.6" module "policy.model"

  pipeline vla_tick_pipeline version 2 {
    stage obs_encode {
      seam "model.backbone"
      capture eager
      protect shallow_copy
      buffer cond_features = "backbone_features"
    }
    stage action_denoise {
      seam "model.action_head.get_action"
      window noise = "single_randn_site"
    }
    loop denoise steps = 4
    cadence observation runs obs_encode
    cadence tick runs action_denoise
    cadence replan runs action_denoise
  }
}
