frt 1

binding flashrt_lingbot_vla_pipeline {
  """The vla_tick_pipeline of flash-rt's binding lingbot_vla_pipeline."""
  status imported "a pipeline of flash-rt's own: its places are words, and nothing here can run it"
  evidence "Imported from flash-rt, bindings/lingbot_vla_pipeline.yaml, sha256 fdb8d7f780dd0a35."
  host native module "flash_rt.models.lingbot"
  host torch module "flash_rt.frontends.torch.lingbot_thor.LingbotTorchFrontendThor"

  pipeline vla_tick_pipeline version 2 {
    stage obs_encode {
      seam "embed_prefix + prefix_encode_36L"
      capture graph "split_prefix_cuda_graph"
      buffer cond_features = "prefix embeddings and mixed-head KV cache"
    }
    stage action_denoise {
      seam "sample_actions or sample_actions_split_graph decoder replay"
      capture graph "decoder_cuda_graph"
      window noise = "sample_actions(noise=...)"
    }
    loop denoise steps = "@num_steps"
    cadence observation runs obs_encode
    cadence tick runs (obs_encode, action_denoise)
    cadence replan runs action_denoise

    coverage complete_hot_path {
      hot_path (
        observation_inputs, vision_patch_embed, vision_transformer, vision_merge, prefix_pack,
        prefix_transformer, prefix_kv_state, denoise_control, state_action_embedding, timestep_conditioning,
        mixed_head_expert, euler_update, action_readout
      )
      segment observation_inputs : host_stage in obs_encode {
        seam "LingBot policy image, mask, token, and state preprocessing"
      }
      segment vision_patch_embed : structure in obs_encode {
        seam "preflattened full-patch Conv3D lowered to one BF16 projection"
        covers patch_projection
      }
      segment vision_transformer : structure in obs_encode {
        seam "vit_forward block loop"
        covers (vision_ffn, qkv_pack, attention_core, linear_proj, norm_fused)
      }
      segment vision_merge : structure in obs_encode {
        seam "vit_merger"
        covers (vision_ffn, linear_proj)
      }
      segment prefix_pack : host_stage in obs_encode {
        seam "embed_prefix image/language layout and attention masks"
      }
      segment prefix_transformer : structure in obs_encode {
        seam "prefix_encode_36L"
        covers (decoder_ffn, qkv_pack, qk_norm_rope, attention_core, linear_proj, norm_fused)
      }
      segment prefix_kv_state : state_region in obs_encode {
        seam "mixed-head prefix KV cache"
        covers cadence_static
      }
      segment denoise_control : control in action_denoise {
        seam "sample_actions fixed-step Euler loop"
      }
      segment state_action_embedding : structure in action_denoise {
        seam "embed_suffix state and action projections"
        covers linear_proj
      }
      segment timestep_conditioning : structure in action_denoise {
        seam "precompute_film expert modulation table"
        covers adaln_producer
      }
      segment mixed_head_expert : structure in action_denoise {
        seam "predict_velocity and denoise_step_36L"
        covers (decoder_ffn, qkv_pack, qk_norm_rope, attention_core, adaln_producer, linear_proj, norm_fused)
      }
      segment euler_update : state_region in action_denoise {
        seam "x_t = x_t + dt * v_t"
      }
      segment action_readout : state_region in action_denoise {
        seam "captured final action tensor"
      }
    }
  }
}
