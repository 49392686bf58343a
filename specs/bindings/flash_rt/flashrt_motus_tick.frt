frt 1

binding flashrt_motus_tick {
  """The vla_tick_pipeline of flash-rt's binding motus_tick."""
  status imported "a pipeline of flash-rt's own: its places are words, and nothing here can run it"
  evidence "Imported from flash-rt, bindings/motus_tick.yaml, sha256 67cf68714718c0f5."
  host native module "flash_rt.models.motus.pipeline_rtx.MotusPipelineRtx"
  host torch module "flash_rt.frontends.torch.motus_rtx.MotusTorchFrontendRtx"

  pipeline vla_tick_pipeline version 2 {
    stage obs_encode {
      seam "MotusPipelineRtx.encode_first_frame + prompt condition producers"
      capture eager "precomputed_or_eager"
      buffer cond_features = "condition latent + T5 context + understanding tokens"
    }
    stage action_denoise {
      seam "MotusPipelineRtx.run fixed-step joint denoise loop"
      capture host_dependent
      window noise = "video_latent + action_latent"
    }
    stage readout {
      seam "MotusPipelineRtx.decode_video + cast_bf16_to_float"
      capture eager
    }
    loop denoise steps = "@pipeline.dims.num_inference_steps"
    cadence request runs obs_encode
    cadence tick runs (action_denoise, readout)

    coverage complete_hot_path {
      hot_path (
        first_frame_encode, t5_context, understanding_tokens, condition_cache, latent_initialization,
        denoise_control, token_prepare, time_modulation, joint_attention, cross_attention, branch_ffns,
        output_heads, euler_update, condition_reinject, video_decode, action_readout
      )
      segment first_frame_encode : host_stage in obs_encode {
        seam "MotusPipelineRtx.encode_first_frame Wan VAE encoder"
      }
      segment t5_context : structure in obs_encode {
        seam "MotusPipelineRtx.preprocess_t5_context"
        covers linear_proj
      }
      segment understanding_tokens : host_stage in obs_encode {
        seam "MotusPipelineRtx.extract_und_tokens Qwen3-VL producer"
      }
      segment condition_cache : state_region in obs_encode {
        seam "cached T5, understanding, timestep, and modulation buffers"
        covers cadence_static
      }
      segment latent_initialization : state_region in action_denoise {
        seam "init_video_latent + init_action_latent"
      }
      segment denoise_control : control in action_denoise {
        seam "fixed num_inference_steps and per-layer branch schedule"
      }
      segment token_prepare : structure in action_denoise {
        seam "prepare_video_tokens + prepare_action_tokens"
        covers linear_proj
      }
      segment time_modulation : structure in action_denoise {
        seam "per-step video/action AdaLN modulation tables"
        covers adaln_producer
      }
      segment joint_attention : structure in action_denoise {
        seam "MotusPipelineRtx.denoise_layer_joint_attention"
        covers (qkv_pack, attention_core, linear_proj)
      }
      segment cross_attention : structure in action_denoise {
        seam "MotusPipelineRtx.denoise_layer_cross_attn_to_t5"
        covers (qkv_pack, attention_core, linear_proj)
      }
      segment branch_ffns : structure in action_denoise {
        seam "video, action, and understanding FFN branches"
        covers (decoder_ffn, vision_ffn, linear_proj)
      }
      segment output_heads : structure in action_denoise {
        seam "video_output_head + action_output_head"
        covers (adaln_producer, linear_proj)
      }
      segment euler_update : state_region in action_denoise {
        seam "video/action latent Euler updates"
      }
      segment condition_reinject : state_region in action_denoise {
        seam "teacher_force_first_frame"
      }
      segment video_decode : host_stage in readout {
        seam "MotusPipelineRtx.decode_video Wan VAE decoder"
      }
      segment action_readout : host_stage in readout {
        seam "MotusPipelineRtx.cast_bf16_to_float"
      }
    }
  }
}
