frt 1

binding flashrt_groot_n17_pipeline {
  """The vla_tick_pipeline of flash-rt's binding groot_n17_pipeline."""
  status imported "a pipeline of flash-rt's own: its places are words, and nothing here can run it"
  evidence "Imported from flash-rt, bindings/groot_n17_pipeline.yaml, sha256 aefeb43d17613d7f."
  host native module "flash_rt.models.groot_n17.pipeline_thor"
  host torch_rtx module "flash_rt.frontends.torch.groot_n17_rtx.GrootN17TorchFrontendRtx"
  host torch_thor module "flash_rt.frontends.torch.groot_n17_thor.GrootN17TorchFrontendThor"

  pipeline vla_tick_pipeline version 2 {
    stage obs_encode {
      seam "GrootN17TorchFrontendThor.set_prompt backbone calibration chain"
      capture graph_or_eager "eager_or_backbone_cuda_graph"
      buffer cond_features = "backbone_features and visual_pos_masks"
    }
    stage action_denoise {
      seam "GrootN17TorchFrontendThor.infer"
      capture graph "kernel_dit_cuda_graph"
      window noise = "initial_noise or persistent action buffer"
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
        seam "official GROOT N1.7 processor aux tensors"
      }
      segment vision_encoder : structure in obs_encode {
        seam "calibrate_vit or kernelized ViT block loop"
        covers (vision_ffn, qkv_pack, attention_core, linear_proj)
      }
      segment vision_merge : structure in obs_encode {
        seam "vision merger projection"
        covers (vision_ffn, linear_proj)
      }
      segment deepstack_features : state_region in obs_encode {
        seam "three request-cadence DeepStack injection buffers"
        covers cadence_static
      }
      segment multimodal_backbone : structure in obs_encode {
        seam "Qwen3-VL language block loop"
        covers (decoder_ffn, qkv_pack, qk_norm_rope, attention_core, linear_proj, norm_fused)
      }
      segment vision_language_adapter : structure in obs_encode {
        seam "VLSA four-layer adapter"
        covers (vision_ffn, qkv_pack, attention_core, linear_proj, norm_fused)
      }
      segment backbone_features : state_region in obs_encode {
        seam "_backbone_features observation-cadence buffer"
        covers cadence_static
      }
      segment cross_kv_refresh : state_region in obs_encode {
        seam "_cross_kv_fwd refreshes persistent DiT K/V buffers"
        covers (cadence_static, linear_proj)
      }
      segment denoise_control : control in action_denoise {
        seam "infer fixed-step flow-matching schedule"
      }
      segment state_action_projection : structure in action_denoise {
        seam "state encoder and action encoder"
        covers linear_proj
      }
      segment timestep_conditioning : structure in action_denoise {
        seam "_precompute_diffusion_modulators"
        covers adaln_producer
      }
      segment dit_transformer : structure in action_denoise {
        seam "dit_forward alternating self/cross attention blocks"
        covers (
          decoder_ffn, qkv_pack, qk_norm_rope, attention_core, adaln_producer, modnorm_qkv_chain, linear_proj,
          norm_fused
        )
      }
      segment euler_update : state_region in action_denoise {
        seam "captured action buffer Euler update"
      }
      segment action_readout : structure in action_denoise {
        seam "DiT output projection and action decoder"
        covers (adaln_producer, linear_proj)
      }
    }
  }
}
