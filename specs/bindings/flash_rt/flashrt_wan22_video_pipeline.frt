frt 1

binding flashrt_wan22_video_pipeline {
  """The video_generation_pipeline of flash-rt's binding wan22_video_pipeline."""
  status imported "a pipeline of flash-rt's own: its places are words, and nothing here can run it"
  evidence "Imported from flash-rt, bindings/wan22_video_pipeline.yaml, sha256 63cf0c73f0bdc266."
  host native module "flash_rt.models.wan22.pipeline_rtx"
  host torch module "flash_rt.frontends.torch.wan22_rtx.Wan22TorchFrontendRtx"

  pipeline video_generation_pipeline version 1 {
    stage input_prepare {
      seam "Wan22TorchFrontendRtx.set_prompt and WanTI2V.generate preprocessing"
      capture eager
    }
    stage condition_encode {
      seam "Wan T5 text encoder and optional image conditioning"
      capture eager "eager_or_offloaded"
    }
    stage latent_prepare {
      seam "WanTI2V latent, mask, and seed initialization"
      capture eager
    }
    stage denoise {
      seam "WanModel.forward under the sampling solver loop"
      capture host_dependent
    }
    stage decode {
      seam "Wan2_2_VAE.decode"
      capture eager
    }
    loop denoising steps = "@infer.steps"

    coverage complete_hot_path {
      hot_path (
        request_validation, prompt_encode, image_condition, latent_initialization, classifier_free_guidance,
        denoise_control, patch_embedding, six_chunk_modulation, qk_norm_rope, self_attention, cross_attention,
        modulated_ffn, denoise_head, scheduler_update, vae_decode, video_readout
      )
      segment request_validation : host_stage in input_prepare {
        seam "Wan22TorchFrontendRtx.infer shape and mode validation"
      }
      segment prompt_encode : host_stage in condition_encode {
        seam "Wan T5 text_encoder"
      }
      segment image_condition : host_stage in condition_encode {
        seam "optional CLIP and Wan2_2_VAE.encode image condition"
      }
      segment latent_initialization : state_region in latent_prepare {
        seam "seeded latent plus image mask/source latent"
      }
      segment classifier_free_guidance : control in denoise {
        seam "conditional and unconditional branch scheduling"
      }
      segment denoise_control : control in denoise {
        seam "sampling solver timestep loop and optional TeaCache decision"
      }
      segment patch_embedding : structure in denoise {
        seam "WanModel.patch_embedding"
        covers linear_proj
      }
      segment six_chunk_modulation : host_stage in denoise {
        seam "WanAttentionBlock.modulation plus timestep embedding chunk(6)"
      }
      segment qk_norm_rope : structure in denoise {
        seam "WanSelfAttention q_norm, k_norm, and 3D RoPE"
        covers qk_norm_rope
      }
      segment self_attention : structure in denoise {
        seam "WanAttentionBlock.self_attn"
        covers (qkv_pack, attention_core, linear_proj)
      }
      segment cross_attention : structure in denoise {
        seam "WanAttentionBlock.cross_attn"
        covers (qkv_pack, attention_core, linear_proj)
      }
      segment modulated_ffn : structure in denoise {
        seam "WanAttentionBlock modulated GELU FFN and gated residual"
        covers vision_ffn
      }
      segment denoise_head : structure in denoise {
        seam "WanModel.head projection"
        covers linear_proj
      }
      segment scheduler_update : state_region in denoise {
        seam "solver latent update and optional TeaCache residual"
      }
      segment vae_decode : host_stage in decode {
        seam "Wan2_2_VAE.decode causal Conv3d stack"
      }
      segment video_readout : host_stage in decode {
        seam "decoded frame tensor and optional save"
      }
    }
  }
}
