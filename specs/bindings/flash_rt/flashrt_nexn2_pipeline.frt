frt 1

binding flashrt_nexn2_pipeline {
  """The autoregressive_decode_pipeline of flash-rt's binding nexn2_pipeline."""
  status imported "a pipeline of flash-rt's own: its places are words, and nothing here can run it"
  evidence "Imported from flash-rt, bindings/nexn2_pipeline.yaml, sha256 88d961b72a2c6e4a."
  host native module "flash_rt.models.nexn2.pipeline_rtx.Nexn2Pipeline"
  host torch module "flash_rt.frontends.torch.nexn2_rtx.Nexn2TorchFrontendRtx"

  pipeline autoregressive_decode_pipeline version 2 {
    stage input_prepare {
      seam "Nexn2TorchFrontendRtx.set_prompt"
      capture eager
    }
    stage prefill {
      seam "nexn2_forward_nvfp4 or seed_prefill_batched"
      capture eager "eager_or_chunked"
    }
    stage decode {
      seam "decode_step or generate_greedy_graph"
      capture bucketed "position_bucketed_cuda_graph"
    }
    stage token_select {
      seam "generate_greedy or generate_greedy_graph"
      policy greedy
    }

    coverage complete_hot_path {
      hot_path (
        request_tokenize, prefill_route, prefill_embedding, prefill_gdn, prefill_full_attention, prefill_moe,
        prefill_state_write, prefill_readout, decode_loop, decode_embedding, decode_gdn,
        decode_full_attention, decode_moe, decode_state_update, decode_readout, token_selection
      )
      segment request_tokenize : host_stage in input_prepare {
        seam "Nexn2TorchFrontendRtx.set_prompt"
      }
      segment prefill_route : control in prefill {
        seam "single-pass, batched, or chunked prefill selection"
      }
      segment prefill_embedding : host_stage in prefill {
        seam "token embedding lookup"
      }
      segment prefill_gdn : host_stage in prefill {
        seam "_gdn_layer and _gdn_wy_chunk"
      }
      segment prefill_full_attention : structure in prefill {
        seam "_full_attn_layer"
        covers (qkv_pack, qk_norm_rope, attention_core, linear_proj)
      }
      segment prefill_moe : host_stage in prefill {
        seam "_moe_layer top-8 routed experts plus shared expert"
      }
      segment prefill_state_write : state_region in prefill {
        seam "Nexn2DecodeState GDN recurrent/conv state and full-attention KV"
      }
      segment prefill_readout : structure in prefill {
        seam "final RMSNorm and NVFP4 lm_head"
        covers linear_proj
      }
      segment decode_loop : control in decode {
        seam "generate_greedy or generate_greedy_graph"
      }
      segment decode_embedding : host_stage in decode {
        seam "single-token embedding lookup"
      }
      segment decode_gdn : structure in decode {
        seam "_decode_gdn"
        covers gated_delta_core
      }
      segment decode_full_attention : structure in decode {
        seam "_decode_full"
        covers (qkv_pack, qk_norm_rope, attention_core, linear_proj)
      }
      segment decode_moe : host_stage in decode {
        seam "_moe_layer_decode"
      }
      segment decode_state_update : state_region in decode {
        seam "GDN state and position-indexed KV update"
      }
      segment decode_readout : structure in decode {
        seam "final RMSNorm and NVFP4 lm_head"
        covers linear_proj
      }
      segment token_selection : control in token_select {
        seam "device or host argmax and max-token stop"
      }
    }
  }
}
