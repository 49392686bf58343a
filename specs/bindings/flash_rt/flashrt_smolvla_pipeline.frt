frt 1

binding flashrt_smolvla_pipeline {
  """The vla_tick_pipeline of flash-rt's binding smolvla_pipeline."""
  status imported "`smolvla_base` is no version of lerobot, and the pipeline names its places in words"
  evidence "Imported from flash-rt, bindings/smolvla_pipeline.yaml, sha256 8aab2e0ea7470d59."
  host lerobot "smolvla_base" module "policy.model"

  pipeline vla_tick_pipeline version 2 {
    stage obs_encode {
      seam "embed_prefix + vlm_with_expert(fill_kv_cache=True)"
      capture eager "eager_then_static_kv_copy"
      buffer cond_features = "prefix embeddings and past_key_values"
    }
    stage action_denoise {
      seam "sample_actions fixed-step flow-matching loop"
      capture graph "decoder_cuda_graph"
      window noise = "sample_actions(noise=...)"
    }
    loop denoise steps = "@policy.config.num_steps"
    cadence observation runs obs_encode
    cadence tick runs (obs_encode, action_denoise)
    cadence replan runs action_denoise

    coverage complete_hot_path {
      hot_path (
        observation_preprocess, image_embedding, language_embedding, prefix_transformer, prefix_kv_state,
        denoise_control, state_action_embedding, timestep_conditioning, action_expert, euler_update,
        action_readout
      )
      segment observation_preprocess : host_stage in obs_encode {
        seam "SmolVLAPolicy preprocessing and missing-camera masks"
      }
      segment image_embedding : structure in obs_encode {
        seam "embed_prefix image encoder and projector"
        covers (vision_ffn, qkv_pack, attention_core, linear_proj)
      }
      segment language_embedding : host_stage in obs_encode {
        seam "embed_language_tokens"
      }
      segment prefix_transformer : structure in obs_encode {
        seam "vlm_with_expert(fill_kv_cache=True)"
        covers (decoder_ffn, qkv_pack, attention_core, linear_proj, norm_fused)
      }
      segment prefix_kv_state : state_region in obs_encode {
        seam "past_key_values copied into decoder static buffers"
        covers cadence_static
      }
      segment denoise_control : control in action_denoise {
        seam "sample_actions timestep loop"
      }
      segment state_action_embedding : structure in action_denoise {
        seam "embed_suffix state and noisy-action projections"
        covers linear_proj
      }
      segment timestep_conditioning : structure in action_denoise {
        seam "precompute_film per-step expert conditioning"
        covers adaln_producer
      }
      segment action_expert : structure in action_denoise {
        seam "predict_velocity expert transformer"
        covers (decoder_ffn, qkv_pack, attention_core, adaln_producer, linear_proj, norm_fused)
      }
      segment euler_update : state_region in action_denoise {
        seam "x_t = x_t + dt * v_t"
      }
      segment action_readout : state_region in action_denoise {
        seam "final x_t action chunk window"
      }
    }
  }
}
