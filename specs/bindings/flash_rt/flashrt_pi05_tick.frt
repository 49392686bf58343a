frt 1

binding flashrt_pi05_tick {
  """The vla_tick_pipeline of flash-rt's binding pi05_tick."""
  status imported "a pipeline of flash-rt's own: its places are words, and nothing here can run it"
  evidence "Imported from flash-rt, bindings/pi05_tick.yaml, sha256 8d480f08d469155b."
  host native module "flash_rt.models.pi05.pipeline_rtx.Pi05Pipeline"
  host torch module "flash_rt.frontends.torch.pi05_rtx"

  pipeline vla_tick_pipeline version 2 {
    stage obs_encode {
      seam "Pi05Pipeline.vision_encoder + Pi05Pipeline.transformer_encoder"
      capture graph_or_eager "full_graph_or_eager"
      buffer cond_features = "encoder K/V buffers"
    }
    stage action_denoise {
      seam "Pi05Pipeline.transformer_decoder"
      capture graph "full_graph_or_decoder_only_graph"
      window noise = "Pi05Pipeline.input_noise_buf"
    }
    loop denoise steps = "@pipeline.num_steps"
    cadence observation runs obs_encode
    cadence tick runs (obs_encode, action_denoise)
    cadence replan runs action_denoise

    coverage complete_hot_path {
      hot_path (
        observation_inputs, vision_encoder, multimodal_projector, prefix_transformer, prefix_kv_state,
        denoise_control, time_conditioning, action_in_projection, denoise_transformer, action_readout,
        action_window
      )
      segment observation_inputs : host_stage in obs_encode {
        seam "input_images_buf + set_language_embeds"
      }
      segment vision_encoder : structure in obs_encode {
        seam "Pi05Pipeline.vision_encoder"
        covers (vision_ffn, qkv_pack, attention_core, norm_fused)
      }
      segment multimodal_projector : structure in obs_encode {
        seam "vision projector into encoder_x"
        covers linear_proj
      }
      segment prefix_transformer : structure in obs_encode {
        seam "Pi05Pipeline.transformer_encoder"
        covers (decoder_ffn, qkv_pack, attention_core, norm_fused)
      }
      segment prefix_kv_state : state_region in obs_encode {
        seam "encoder K/V buffers retained by decoder-only replay"
        covers cadence_static
      }
      segment denoise_control : control in action_denoise {
        seam "Pi05Pipeline.transformer_decoder fixed-step loop"
      }
      segment time_conditioning : structure in action_denoise {
        seam "decoder time embeddings and per-layer style tables"
        covers adaln_producer
      }
      segment action_in_projection : structure in action_denoise {
        seam "decoder_action_in_proj"
        covers linear_proj
      }
      segment denoise_transformer : structure in action_denoise {
        seam "Pi05Pipeline._decoder_layer"
        covers (decoder_ffn, qkv_pack, attention_core, adaln_producer, norm_fused)
      }
      segment action_readout : structure in action_denoise {
        seam "decoder final adaptive norm and action projection"
        covers (adaln_producer, linear_proj)
      }
      segment action_window : state_region in action_denoise {
        seam "input_noise_buf SWAP window becomes the action output"
      }
    }
  }
}
