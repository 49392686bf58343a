frt 1

binding flashrt_groot_n16_pipeline {
  """The vla_tick_pipeline of flash-rt's binding groot_n16_pipeline."""
  status imported "a pipeline of flash-rt's own: its places are words, and nothing here can run it"
  evidence "Imported from flash-rt, bindings/groot_n16_pipeline.yaml, sha256 c1909bf6a1bc6a0b."
  host native module "flash_rt.models.groot.pipeline_rtx"
  host torch module "flash_rt.frontends.torch.groot_rtx"

  pipeline vla_tick_pipeline version 2 {
    stage obs_encode {
      seam "GrootSigLIP2.forward + GrootQwen3.forward"
      capture graph_or_eager "eager_or_full_graph"
      buffer cond_features = "backbone_features"
    }
    stage action_denoise {
      seam "GrootDiT.run_steps"
      capture graph "full_dit_cuda_graph"
      window noise = "GrootDiT.bufs.actions"
    }
    loop denoise steps = 4
    cadence observation runs obs_encode
    cadence tick runs (obs_encode, action_denoise)
    cadence replan runs action_denoise

    coverage complete_hot_path {
      hot_path (
        observation_inputs, vision_encoder, vision_merge, multimodal_pack, backbone_transformer,
        backbone_features, cross_kv_precompute, denoise_control, state_action_projection,
        timestep_conditioning, dit_transformer, euler_update, action_readout
      )
      segment observation_inputs : host_stage in obs_encode {
        seam "official GROOT processor image, language, and state preparation"
      }
      segment vision_encoder : structure in obs_encode {
        seam "GrootSigLIP2._siglip_layers"
        covers (vision_ffn, qkv_pack, attention_core, linear_proj)
      }
      segment vision_merge : structure in obs_encode {
        seam "GrootSigLIP2._post_ln_unshuffle_mlp1"
        covers (vision_ffn, linear_proj)
      }
      segment multimodal_pack : host_stage in obs_encode {
        seam "vision and language token assembly"
      }
      segment backbone_transformer : structure in obs_encode {
        seam "GrootQwen3.forward"
        covers (decoder_ffn, qkv_pack, qk_norm_rope, attention_core, linear_proj, norm_fused)
      }
      segment backbone_features : state_region in obs_encode {
        seam "GrootQwen3.bufs.backbone_features"
        covers cadence_static
      }
      segment cross_kv_precompute : state_region in obs_encode {
        seam "GrootDiT.precompute_cross_kv"
        covers (cadence_static, linear_proj)
      }
      segment denoise_control : control in action_denoise {
        seam "GrootDiT.run_steps fixed four-step loop"
      }
      segment state_action_projection : structure in action_denoise {
        seam "state encoder and action encoder projections"
        covers linear_proj
      }
      segment timestep_conditioning : structure in action_denoise {
        seam "action_time_embeds and per-layer AdaLayerNorm conditioning"
        covers adaln_producer
      }
      segment dit_transformer : structure in action_denoise {
        seam "GrootDiT._run_step alternating self/cross blocks"
        covers (
          decoder_ffn, qkv_pack, qk_norm_rope, attention_core, adaln_producer, modnorm_qkv_chain, linear_proj,
          norm_fused
        )
      }
      segment euler_update : state_region in action_denoise {
        seam "gpu_euler_step over the actions buffer"
      }
      segment action_readout : structure in action_denoise {
        seam "final AdaLayerNorm, output projection, and action decoder"
        covers (adaln_producer, linear_proj)
      }
    }
  }
}
