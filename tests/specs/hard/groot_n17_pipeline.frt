frt 1

pipeline vla_tick_pipeline version 2 {
  """One tick of a vision-language-action policy.

  What is seen is encoded at the pace of observations. The denoising loop of fixed length
  runs at the pace of ticks and is captured whole; its noise comes in from outside.
  """
  status draft
  family cond_iter_pipeline

  stage obs_encode {
    cadence observation
    in images : swap
    in language (cadence = prompt)
    in state : swap
    out cond_features : static
    capture host_dependent
  }
  stage action_denoise {
    cadence tick
    loop steps (fixed_shape) = host
    in cond_features : static (read_only)
    in state? : swap
    in noise : swap (explicit)
    out action_chunk : swap (readback)
    capture required
  }
  stage readout? {
    cadence tick
    in iterative_state : swap
    out deployment_output : readback
    capture host_dependent
  }

  embeds (
    decoder_ffn, vision_ffn, qkv_pack, qk_norm_rope, attention_core, adaln_producer, modnorm_qkv_chain,
    linear_proj, patch_projection, norm_fused
  )
  substructure cross_kv_precompute (cadence = prompt)
  substructure adaln_step_table (cadence = plan)
  conform (
    stage_seam_exists, fixed_shape_loop, noise_is_a_window, condition_is_read_only, readout_cost_is_reported,
    capture_blockers_are_listed
  )
  gate parity  on host_eager_same_seed { cosine >= 0.999, max_abs }
  gate net_win per stage { tick_latency, against (host_eager) }
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
      capture backbone_graph_or_eager
      out cond_features = backbone_features
    }
    stage action_denoise {
      seam "infer"
      loop steps (fixed_shape) = 4
      window noise : swap = initial_noise
      capture dit_graph
    }

    cadence observation { runs (obs_encode) }
    cadence tick { runs (obs_encode, action_denoise) }
    cadence replan { runs (action_denoise) }

    coverage complete_hot_path {
      hot_path (
        observation_inputs, vision_encoder, vision_merge, deepstack_features, multimodal_backbone,
        vision_language_adapter, backbone_features, cross_kv_refresh, denoise_control,
        state_action_projection, timestep_conditioning, dit_transformer, euler_update, action_readout
      )

      segment observation_inputs : host_stage {
        stage obs_encode
        seam "what the processor hands over"
      }
      segment vision_encoder : structure {
        stage obs_encode
        seam "the loop over the vision blocks"
        covers (vision_ffn, qkv_pack, attention_core, linear_proj)
      }
      segment vision_merge : structure {
        stage obs_encode
        covers (vision_ffn, linear_proj)
      }
      segment deepstack_features : state_region {
        stage obs_encode
        seam "three buffers that are filled once a request"
        covers (cadence_static)
      }
      segment multimodal_backbone : structure {
        stage obs_encode
        seam "the loop over the language blocks"
        covers (decoder_ffn, qkv_pack, qk_norm_rope, attention_core, linear_proj, norm_fused)
      }
      segment vision_language_adapter : structure {
        stage obs_encode
        seam "an adapter of four layers"
        covers (vision_ffn, qkv_pack, attention_core, linear_proj, norm_fused)
      }
      segment backbone_features : state_region {
        stage obs_encode
        covers (cadence_static)
      }
      segment cross_kv_refresh : state_region {
        stage obs_encode
        seam "keys and values of the cross attention, kept between ticks"
        covers (cadence_static, linear_proj)
      }
      segment denoise_control : control {
        stage action_denoise
        seam "the schedule of the flow"
      }
      segment state_action_projection : structure {
        stage action_denoise
        covers (linear_proj)
      }
      segment timestep_conditioning : structure {
        stage action_denoise
        seam "the modulations of all steps, computed before the loop"
        covers (adaln_producer)
      }
      segment dit_transformer : structure {
        stage action_denoise
        seam "self and cross attention in turns"
        covers (
          decoder_ffn, qkv_pack, qk_norm_rope, attention_core, adaln_producer, modnorm_qkv_chain, linear_proj,
          norm_fused
        )
      }
      segment euler_update : state_region {
        stage action_denoise
        seam "the action buffer, updated in place"
      }
      segment action_readout : structure {
        stage action_denoise
        covers (adaln_producer, linear_proj)
      }
    }
  }
}
