frt 1

binding flashrt_qwen3_8b_pipeline {
  """The autoregressive_decode_pipeline of flash-rt's binding qwen3_8b_pipeline."""
  status imported "a pipeline of flash-rt's own: its places are words, and nothing here can run it"
  evidence "Imported from flash-rt, bindings/qwen3_8b_pipeline.yaml, sha256 e9412696bb1af33b."
  host native module "flash_rt.models.qwen3.pipeline_rtx.Qwen3Pipeline"
  host torch module "flash_rt.frontends.torch.qwen3_rtx.Qwen3TorchFrontendRtx"

  pipeline autoregressive_decode_pipeline version 2 {
    stage input_prepare {
      seam "Qwen3TorchFrontendRtx.set_prompt"
      capture eager
    }
    stage prefill {
      seam "Qwen3TorchFrontendRtx.prefill_with_graph"
      seam eager "Qwen3TorchFrontendRtx.forward_prefill_nvfp4"
      capture bucketed "bucketed_cuda_graph"
    }
    stage decode {
      seam "Qwen3TorchFrontendRtx.decode_step_with_graph"
      seam eager "Qwen3TorchFrontendRtx.forward_own_decode_nvfp4"
      capture bucketed "position_bucketed_cuda_graph"
    }
    stage token_select {
      seam "Qwen3TorchFrontendRtx.greedy_decode_from_prompt"
      policy greedy
    }

    coverage complete_hot_path {
      hot_path (
        request_tokenize, prefill_embedding, prefill_norm_rope, prefill_transformer, prefill_kv_write,
        prefill_readout, decode_loop, decode_embedding, decode_norm_rope, decode_transformer,
        decode_kv_update, decode_readout, token_selection
      )
      segment request_tokenize : host_stage in input_prepare {
        seam "Qwen3TorchFrontendRtx.set_prompt"
      }
      segment prefill_embedding : host_stage in prefill {
        seam "embedding_lookup_bf16"
      }
      segment prefill_norm_rope : host_stage in prefill {
        seam "q/k RMSNorm + 1D RoPE fused post-processing"
      }
      segment prefill_transformer : structure in prefill {
        seam "Qwen3TorchFrontendRtx._layer_forward_full_nvfp4_prefill"
        covers (decoder_ffn, qkv_pack, attention_core, linear_proj)
      }
      segment prefill_kv_write : state_region in prefill {
        seam "attention K_cache/V_cache rows [start_pos:start_pos+S]"
      }
      segment prefill_readout : structure in prefill {
        seam "final RMSNorm + lm_head"
        covers linear_proj
      }
      segment decode_loop : control in decode {
        seam "greedy_decode_from_prompt token loop"
      }
      segment decode_embedding : host_stage in decode {
        seam "single-token embedding lookup"
      }
      segment decode_norm_rope : host_stage in decode {
        seam "qwen3_q_norm_rope_qstage + qwen3_k_norm_rope_kvwrite"
      }
      segment decode_transformer : structure in decode {
        seam "Qwen3TorchFrontendRtx._layer_forward_full_nvfp4"
        covers (decoder_ffn, qkv_pack, attention_core, linear_proj)
      }
      segment decode_kv_update : state_region in decode {
        seam "position-indexed attention K_cache/V_cache update"
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
