frt 1

binding flashrt_smolvla_tick {
  """The vla_tick_pipeline of flash-rt's binding smolvla_tick."""
  status imported "`smolvla_base` is no version of lerobot, and the pipeline names its places in words"
  evidence "Imported from flash-rt, bindings/smolvla_tick.yaml, sha256 fd303390e1d5258b."
  host lerobot "smolvla_base" module "policy.model"

  pipeline vla_tick_pipeline version 2 {
    stage obs_encode {
      seam "model.embed_prefix + model.vlm_with_expert(fill_kv_cache=True)"
      capture eager
      buffer cond_features = "past_key_values"
    }
    stage action_denoise {
      seam "model.denoise_step"
      window noise = "injectable"
    }
    loop denoise steps = 10
    cadence observation runs obs_encode
    cadence tick runs (obs_encode, action_denoise)
    cadence replan runs action_denoise
  }
}
