frt 1

pipeline vla_tick_pipeline version 2 {
  """One tick of a vision-language-action policy.

  What is seen and said is encoded once an observation. A loop of a fixed number of steps turns noise into a
  chunk of actions once a tick; it reads the condition and never writes it, so a tick on an unchanged
  observation runs the loop alone. The noise comes in from outside. Where the iterated state needs an output
  decoder, `readout` turns it into what the robot gets.
  """
  status draft
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
    qk_norm_rope version 1, attention_core version 1, adaln_producer version 1, modnorm_qkv_chain version 3,
    linear_proj version 1, patch_projection version 1, norm_fused version 1
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

binding groot_n17_pipeline {
  """GROOT N1.7: one checkpoint, three implementations of its tick."""
  status imported "stage seams are the words of the sources; no host of this family was run"

  host native module "flash_rt.models.groot_n17.pipeline_thor"
  host torch_rtx module "flash_rt.frontends.torch.groot_n17_rtx.GrootN17TorchFrontendRtx"
  host torch_thor module "flash_rt.frontends.torch.groot_n17_thor.GrootN17TorchFrontendThor"

  pipeline vla_tick_pipeline version 2 {
    stage obs_encode {
      seam "the backbone part of set_prompt"
      capture graph_or_eager "backbone graph, or eager"
      buffer cond_features = "backbone_features"
    }
    stage action_denoise {
      seam "infer"
      window noise = "initial_noise"
      capture graph "the graph of the DiT"
    }

    loop denoise steps = 4
    cadence observation runs obs_encode
    cadence tick runs (obs_encode, action_denoise)
    cadence replan runs action_denoise

    coverage complete_hot_path {
      hot_path (
        observation_inputs, vision_encoder, vision_merge, deepstack_features, multimodal_backbone,
        vision_language_adapter, backbone_features, cross_kv_refresh, denoise_control,
        state_action_projection, timestep_conditioning, dit_transformer, euler_update, action_readout
      )

      segment observation_inputs : host_stage in obs_encode {
        seam "what the processor hands over"
      }
      segment vision_encoder : structure in obs_encode {
        seam "the loop over the vision blocks"
        covers (vision_ffn, qkv_pack, attention_core, linear_proj)
      }
      segment vision_merge : structure in obs_encode {
        seam "the merger of patches"
        covers (vision_ffn, linear_proj)
      }
      segment deepstack_features : state_region in obs_encode {
        seam "three buffers that are filled once a request"
        covers (cadence_static)
      }
      segment multimodal_backbone : structure in obs_encode {
        seam "the loop over the language blocks"
        covers (decoder_ffn, qkv_pack, qk_norm_rope, attention_core, linear_proj, norm_fused)
      }
      segment vision_language_adapter : structure in obs_encode {
        seam "an adapter of four layers"
        covers (vision_ffn, qkv_pack, attention_core, linear_proj, norm_fused)
      }
      segment backbone_features : state_region in obs_encode {
        seam "the buffer that the backbone fills"
        covers (cadence_static)
      }
      segment cross_kv_refresh : state_region in obs_encode {
        seam "keys and values of the cross attention, kept between ticks"
        covers (cadence_static, linear_proj)
      }
      segment denoise_control : control in action_denoise {
        seam "the schedule of the flow"
      }
      segment state_action_projection : structure in action_denoise {
        seam "the encoders of state and actions"
        covers (linear_proj)
      }
      segment timestep_conditioning : structure in action_denoise {
        seam "the modulations of all steps, computed before the loop"
        covers (adaln_producer)
      }
      segment dit_transformer : structure in action_denoise {
        seam "self and cross attention in turns"
        covers (
          decoder_ffn, qkv_pack, qk_norm_rope, attention_core, adaln_producer, modnorm_qkv_chain, linear_proj,
          norm_fused
        )
      }
      segment euler_update : state_region in action_denoise {
        seam "the action buffer, updated in place"
      }
      segment action_readout : structure in action_denoise {
        seam "the output projection and the action decoder"
        covers (adaln_producer, linear_proj)
      }
    }
  }
}
