frt 1

pipeline vla_tick_pipeline version 2 {
  """One tick of a vision-language-action policy.

  What is seen and said is encoded once an observation. A loop of a fixed number of steps turns
  noise into a chunk of actions once a tick; it reads the condition and never writes it, so a
  tick on an unchanged observation runs the loop alone. The noise comes in from outside. Where
  the iterated state needs an output decoder, `readout` turns it into what the robot gets.
  """
  family cond_iter_pipeline

  window images            : swap from caller cadence observation
  window language          : staged from caller cadence prompt
  window state             : swap from caller cadence observation
  window noise             : swap from caller cadence tick
  window action_chunk      : swap readback cadence tick
  window iterative_state   : swap cadence tick
  window deployment_output : readback cadence tick
  buffer cond_features     : static cadence observation

  stage obs_encode {
    """The vision tower, the language model and their adapters."""
    cadence observation
    read (images, language, state)
    write cond_features
    capture host_dependent
  }

  stage action_denoise {
    """One step of the action head: diffusion or flow matching."""
    cadence tick
    read (cond_features, state?, noise)
    read_write (action_chunk?, iterative_state?)
    capture required
  }

  stage readout? {
    cadence tick
    read iterative_state
    write deployment_output
    capture host_dependent
  }

  loop denoise {
    steps = binding
    shapes fixed
    runs (action_denoise)
  }

  embeds (
    decoder_ffn version 1, vision_ffn version 2, vision_ffn version 3, qkv_pack version 1,
    qk_norm_rope version 1, attention_core version 1, attention_core version 2, adaln_producer version 1,
    modnorm_qkv_chain version 3, linear_proj version 1, patch_projection version 1, norm_fused version 1,
    norm_fused version 2
  )
  substructure cross_kv_precompute cadence prompt
  substructure adaln_step_table cadence plan

  conform stage_seam_exists                  : every_stage_runs
  conform hot_loop_fixed_shape_fixed_steps   : fixed_loop (denoise)
  conform noise_single_hoistable_site        : explicit_window (noise)
  conform condition_read_only_in_loop        : read_only_in_loop (cond_features)
  conform action_chunk_cadence               : changes_only_at (action_chunk, tick)
  conform readout_cost_reported_when_present : cost_reported (readout)
  conform capture_blockers_enumerated        : fallback_reported (obs_encode, action_denoise)

  gate parity  on action_chunk { cosine >= 0.999, max_abs, against (host_eager_same_seed) }
  gate net_win per tick { tick_latency, stage_latency, against (host_eager) }
}
