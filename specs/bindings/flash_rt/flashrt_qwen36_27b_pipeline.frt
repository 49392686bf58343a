frt 1

binding flashrt_qwen36_27b_pipeline {
  """The autoregressive_decode_pipeline of flash-rt's binding qwen36_27b_pipeline."""
  status imported "a pipeline of flash-rt's own: its places are words, and nothing here can run it"
  evidence "Imported from flash-rt, bindings/qwen36_27b_pipeline.yaml, sha256 694fd9cc9ab25548."
  host native module "flash_rt.models.qwen36.pipeline_rtx.Qwen36Pipeline"
  host torch_rtx module "flash_rt.frontends.torch.qwen36_rtx.Qwen36TorchFrontendRtx"
  host torch_thor module "flash_rt.frontends.torch.qwen36_thor.Qwen36TorchFrontendThor"
  host torch_spark module "flash_rt.frontends.torch.qwen36_spark.Qwen36TorchFrontendSpark"

  pipeline autoregressive_decode_pipeline version 2 {
    stage input_prepare {
      seam "Qwen36TorchFrontendRtx.set_prompt"
      capture eager
    }
    stage prefill {
      seam "native NVFP4 prompt prefill or long-context chunked prefill"
      capture bucketed_or_eager "eager_or_position_bucketed_cuda_graph"
    }
    stage decode {
      seam "single-token, MTP, or DFlash verify decode"
      capture bucketed "position_and_verify_bucketed_cuda_graph"
    }
    stage token_select {
      seam "greedy or speculative acceptance control"
      policy verified_draft
    }

    coverage complete_hot_path {
      hot_path (
        request_tokenize, prefill_route, prefill_embedding, prefill_gdn, prefill_full_attention, prefill_ffn,
        prefill_state_write, prefill_readout, decode_loop, decode_embedding, decode_gdn,
        decode_full_attention, decode_ffn, decode_state_update, mtp_drafter, speculative_verify,
        decode_readout, token_selection
      )
      segment request_tokenize : host_stage in input_prepare {
        seam "Qwen36TorchFrontendRtx.set_prompt"
      }
      segment prefill_route : control in prefill {
        seam "short, chunked, FP8-KV, or TurboQuant prefill selection"
      }
      segment prefill_embedding : host_stage in prefill {
        seam "token embedding lookup"
      }
      segment prefill_gdn : host_stage in prefill {
        seam "three-of-four Gated DeltaNet layers and carried recurrent state"
      }
      segment prefill_full_attention : structure in prefill {
        seam "_layer_forward_full_K_nvfp4"
        covers (qkv_pack, qk_norm_rope, attention_core, linear_proj)
      }
      segment prefill_ffn : structure in prefill {
        seam "dense SwiGLU projections in all 64 layers"
        covers (decoder_ffn, linear_proj)
      }
      segment prefill_state_write : state_region in prefill {
        seam "GDN recurrent/conv state plus BF16, FP8, or packed KV state"
      }
      segment prefill_readout : structure in prefill {
        seam "final RMSNorm and lm_head"
        covers linear_proj
      }
      segment decode_loop : control in decode {
        seam "generate_own and speculative decode loops"
      }
      segment decode_embedding : host_stage in decode {
        seam "single-token embedding lookup"
      }
      segment decode_gdn : structure in decode {
        seam "_layer_forward_lin_nvfp4 Gated DeltaNet state update"
        covers gated_delta_core
      }
      segment decode_full_attention : structure in decode {
        seam "_layer_forward_full_nvfp4"
        covers (qkv_pack, qk_norm_rope, attention_core, linear_proj)
      }
      segment decode_ffn : structure in decode {
        seam "NVFP4 dense SwiGLU decode projections"
        covers (decoder_ffn, linear_proj)
      }
      segment decode_state_update : state_region in decode {
        seam "position-indexed GDN state and KV write with snapshot rollback"
      }
      segment mtp_drafter : structure in decode {
        seam "forward_mtp_head_nvfp4 or DFlash drafter"
        covers (decoder_ffn, qkv_pack, qk_norm_rope, attention_core, linear_proj)
      }
      segment speculative_verify : control in decode {
        seam "K-token verify, accept-prefix, and partial rollback"
      }
      segment decode_readout : structure in decode {
        seam "final RMSNorm and lm_head matvec"
        covers linear_proj
      }
      segment token_selection : control in token_select {
        seam "argmax or verified draft acceptance and stop conditions"
      }
    }
  }
}
