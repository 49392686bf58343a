frt 1

pipeline video_generation_pipeline version 1 {
  """An image or a video from a condition.

  The request's text and images become the condition once. The initial latent comes from a seed
  or a source that the caller gives. Each step of the loop reads the condition and writes the
  latent and the scheduler's state, and nothing else. A decoder may turn the last latent into
  media.
  """
  family cond_iter_pipeline

  window request         : host from caller cadence request
  window prepared_inputs : staged from caller cadence request
  window seed_or_source  : staged from caller cadence request
  window latent          : swap readback cadence generation_step
  window timestep        : swap from caller cadence generation_step
  window media           : readback cadence request
  buffer condition       : static cadence request
  state condition_cache cadence request writers condition_encode readers denoise
  state latent writers (latent_prepare, denoise) readers (denoise, decode)
  state scheduler_state cadence generation_step writers (latent_prepare, denoise) readers denoise
  state graph_buckets cadence shape_or_step

  stage input_prepare? {
    cadence request
    read request
    write prepared_inputs
    capture host_dependent
  }

  stage condition_encode {
    """Text, images, and what of them is kept for every step."""
    cadence request
    read prepared_inputs
    write (condition, condition_cache?)
    capture host_dependent
  }

  stage latent_prepare {
    cadence request
    read (seed_or_source, condition)
    write (latent, scheduler_state?)
    capture host_dependent
  }

  stage denoise {
    """One step: the model and the scheduler's update."""
    cadence generation_step
    read (condition, condition_cache?, timestep)
    read_write (latent, scheduler_state)
    capture host_dependent
  }

  stage decode? {
    """The VAE."""
    cadence request
    read latent
    write media
    capture host_dependent
  }

  loop denoising {
    steps = binding
    shapes host
    runs (denoise)
  }

  embeds (
    decoder_ffn version 1, vision_ffn version 2, vision_ffn version 3, qkv_pack version 1,
    qk_norm_rope version 1, attention_core version 1, adaln_producer version 1, adaln_producer version 2,
    modnorm_qkv_chain version 3, linear_proj version 1, norm_fused version 1
  )

  conform condition_is_read_only_in_denoise     : read_only_in_loop (condition)
  conform initial_latent_or_noise_is_explicit   : explicit_window (seed_or_source)
  conform scheduler_update_is_explicit          : declared_writers (scheduler_state)
  conform fixed_shape_contract_is_declared      : fixed_shapes (denoising)
  conform skipped_step_cache_has_a_quality_gate : skips_gated (denoising)
  conform decode_cost_is_reported_when_present  : cost_reported (decode)

  gate parity  on (latent, media) { cosine >= 0.999, rel_l2, max_abs, against (host_eager_same_seed) }
  gate net_win per request { request_latency, stage_latency, step_latency, against (host_eager) }
}
