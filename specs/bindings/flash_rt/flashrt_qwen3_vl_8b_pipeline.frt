frt 1

binding flashrt_qwen3_vl_8b_pipeline {
  """The autoregressive_decode_pipeline of flash-rt's binding qwen3_vl_8b_pipeline."""
  status imported "a pipeline of flash-rt's own: its places are words, and nothing here can run it"
  evidence "Imported from flash-rt, bindings/qwen3_vl_8b_pipeline.yaml, sha256 64ce835012055be6."
  host native module "flash_rt.models.qwen3_vl.pipeline_rtx.Qwen3VlPipeline"
  host torch module "flash_rt.frontends.torch.qwen3_vl_rtx.Qwen3VlTorchFrontendRtx"

  pipeline autoregressive_decode_pipeline version 2 {
    stage input_prepare {
      seam "Qwen3VlTorchFrontendRtx.set_prompt"
      capture eager "eager_geometry_and_staging"
    }
    stage modality_encode {
      seam "Qwen3VlVisionRtx.forward"
      capture graph_or_eager "eager_or_patch_count_cuda_graph"
    }
    stage prefill {
      seam "Qwen3VlTorchFrontendRtx.prefill_graph"
      seam eager "Qwen3VlTorchFrontendRtx.prefill"
      capture bucketed "geometry_bucketed_cuda_graph"
    }
    stage decode {
      seam "Qwen3VlTorchFrontendRtx._decode_step_graph"
      capture bucketed "cache_and_rope_position_bucketed_cuda_graph"
    }
    stage token_select {
      seam "Qwen3VlTorchFrontendRtx.generate"
      policy greedy
    }

    coverage complete_hot_path {
      hot_path (
        message_preprocess, vision_patch_embed, vision_qkv_rope, vision_transformer, vision_merge,
        multimodal_scatter, deepstack_injection, prefill_mrope, prefill_transformer, prefill_kv_write,
        prefill_readout, decode_loop, decode_embedding, decode_mrope, decode_transformer, decode_kv_update,
        decode_readout, token_selection
      )
      segment message_preprocess : host_stage in input_prepare {
        seam "processor + multimodal geometry construction"
      }
      segment vision_patch_embed : structure in modality_encode {
        seam "preflattened full-patch Conv3D lowered to one BF16 projection"
        covers patch_projection
      }
      segment vision_qkv_rope : structure in modality_encode {
        seam "packed vision QKV bias/split + pre-expanded 2D rotate-half RoPE"
        covers qkv_rope
      }
      segment vision_transformer : structure in modality_encode {
        seam "Qwen3VlVisionRtx.forward block loop"
        covers (vision_ffn, qkv_rope, attention_core, linear_proj)
      }
      segment vision_merge : structure in modality_encode {
        seam "Qwen3VlVisionRtx._merger_forward"
        covers (vision_ffn, linear_proj)
      }
      segment multimodal_scatter : host_stage in prefill {
        seam "image features replace placeholder token embeddings"
      }
      segment deepstack_injection : host_stage in prefill {
        seam "vision merger features added to early LLM hidden states"
      }
      segment prefill_mrope : structure in prefill {
        seam "interleaved MRoPE q/k post-processing"
        covers qk_norm_rope
      }
      segment prefill_transformer : structure in prefill {
        seam "Qwen3TorchFrontendRtx._layer_forward_full_nvfp4_prefill"
        covers (decoder_ffn, qkv_pack, attention_core, linear_proj)
      }
      segment prefill_kv_write : state_region in prefill {
        seam "language attention K_cache/V_cache prefill"
      }
      segment prefill_readout : structure in prefill {
        seam "final RMSNorm + lm_head"
        covers linear_proj
      }
      segment decode_loop : control in decode {
        seam "Qwen3VlTorchFrontendRtx.generate token loop"
      }
      segment decode_embedding : host_stage in decode {
        seam "single-token language embedding lookup"
      }
      segment decode_mrope : structure in decode {
        seam "cache-position and MRoPE-position keyed q/k post-processing"
        covers qk_norm_rope
      }
      segment decode_transformer : structure in decode {
        seam "Qwen3TorchFrontendRtx._layer_forward_full_nvfp4"
        covers (decoder_ffn, qkv_pack, attention_core, linear_proj)
      }
      segment decode_kv_update : state_region in decode {
        seam "language attention K_cache/V_cache token update"
      }
      segment decode_readout : structure in decode {
        seam "final RMSNorm + lm_head BF16 matvec"
        covers linear_proj
      }
      segment token_selection : control in token_select {
        seam "argmax + EOS/max-token stop"
      }
    }
  }
}
