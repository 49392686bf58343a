frt 1

binding flashrt_cosmos3_video_pipeline {
  """The video_generation_pipeline of flash-rt's binding cosmos3_video_pipeline."""
  status imported "a pipeline of flash-rt's own: its places are words, and nothing here can run it"
  evidence "Imported from flash-rt, bindings/cosmos3_video_pipeline.yaml, sha256 3e6ab8a71eb89fa3."
  host official module "diffusers_cosmos3.transformer.Cosmos3OmniTransformer"
  host native module "flash_rt.models.cosmos3_video.pipeline_rtx.CosmosVideo"
  host torch module "flash_rt.frontends.torch.cosmos3_video_rtx.Cosmos3VideoTorchFrontendRtx"

  pipeline video_generation_pipeline version 1 {
    stage input_prepare {
      seam "Cosmos3VideoTorchFrontendRtx.set_prompt reference conditioning load"
      capture eager
    }
    stage condition_encode {
      seam "CosmosVideo.precompute_und"
      capture eager "eager_once"
    }
    stage latent_prepare {
      seam "initial vision latent and CosmosVideo.embed_gen"
      capture eager
    }
    stage denoise {
      seam "Cosmos3VideoTorchFrontendRtx._denoise"
      capture graph "per_step_gen_cuda_graph"
    }
    loop denoising steps = "@reference_dump"

    coverage complete_hot_path {
      hot_path (
        reference_condition_load, rope_tables, text_tower, text_kv_cache, latent_initialization,
        denoise_control, latent_embedding, timestep_embedding, qk_norm_rope, generation_tower,
        scheduler_update, latent_readout
      )
      segment reference_condition_load : host_stage in input_prepare {
        seam "official reference safetensors and geometry load"
      }
      segment rope_tables : host_stage in condition_encode {
        seam "CosmosVideo.set_rope"
      }
      segment text_tower : structure in condition_encode {
        seam "CosmosVideo.precompute_und two-tower text branch"
        covers (decoder_ffn, qkv_pack, attention_core, linear_proj)
      }
      segment text_kv_cache : state_region in condition_encode {
        seam "CosmosVideo.cK and CosmosVideo.cV"
      }
      segment latent_initialization : state_region in latent_prepare {
        seam "reference initial latent and patchify window"
      }
      segment denoise_control : control in denoise {
        seam "FlowUniPCMultistepScheduler timestep loop and optional skip set"
      }
      segment latent_embedding : structure in denoise {
        seam "CosmosVideo.embed_gen vae2llm projection"
        covers linear_proj
      }
      segment timestep_embedding : host_stage in denoise {
        seam "reference per-step timestep embedding"
      }
      segment qk_norm_rope : structure in denoise {
        seam "factored causal/full QKV -> per-head Q/K RMSNorm -> RoPE"
        covers qk_norm_rope
      }
      segment generation_tower : structure in denoise {
        seam "CosmosVideo.forward generation branch"
        covers (decoder_ffn, qkv_pack, attention_core, linear_proj)
      }
      segment scheduler_update : state_region in denoise {
        seam "FlowUniPCMultistepScheduler.step latent update"
      }
      segment latent_readout : host_stage in denoise {
        seam "unpatchify denoised latent"
      }
    }
  }
}
