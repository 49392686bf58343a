frt 1

pipeline autoregressive_decode_pipeline version 2 {
  """Text from a causal model, with other modalities or without.

  The host prepares the request and, where there is one, encodes the other modality once. A
  prefill over the prompt fills the decode state and gives the first logits. Each step of the
  loop then selects a token from the logits at hand and decodes it against the state; selecting
  stays outside of the decoder.
  """
  family autoregressive_decode

  window request           : host from caller cadence request
  window modality_inputs   : staged from caller cadence request
  window token_ids         : staged from caller cadence request
  window token_id          : swap cadence token
  window logits            : readback cadence token
  window stop              : host cadence token
  buffer geometry          : static cadence request
  buffer modality_features : static cadence request
  buffer kv_state          : mutable
  state kv_state writers (prefill, decode) readers decode
  state graph_buckets cadence shape_or_position

  stage input_prepare? {
    """The host's own: tokens, positions, sizes of grids."""
    cadence request
    read request
    write (token_ids, geometry?)
    capture host_dependent
  }

  stage modality_encode? {
    cadence request
    read (modality_inputs, geometry?)
    write modality_features
    capture host_dependent
  }

  stage prefill {
    cadence request
    read (token_ids, modality_features?)
    write (kv_state, logits)
    capture bucketed_or_eager
  }

  stage token_select {
    cadence token
    read logits
    write (token_id, stop)
    capture host_dependent
  }

  stage decode {
    """One token through the whole model."""
    cadence token
    read token_id
    read_write kv_state
    write logits
    capture bucketed_or_eager
  }

  loop generate {
    steps = binding
    until stop
    shapes host
    runs (token_select, decode)
  }

  embeds (
    decoder_ffn version 1, vision_ffn version 2, vision_ffn version 3, qkv_pack version 1,
    qk_norm_rope version 1, qkv_rope version 1, qkv_rope version 2, attention_core version 1,
    attention_core version 2, gated_delta_core version 1, gated_delta_core version 2, linear_proj version 1,
    patch_projection version 1, norm_fused version 1, norm_fused version 2, moe_experts version 1
  )

  conform prefill_populates_decode_state            : populated_before_loop (kv_state)
  conform decode_state_update_is_explicit           : declared_writers (kv_state)
  conform token_selection_is_outside_decoder_blocks : changes_only_in (token_id, token_select)
  conform modality_features_have_request_cadence    : changes_only_at (modality_features, request)
  conform graph_bucket_fallback_is_reported         : fallback_reported (prefill, decode)

  gate parity on logits {
    token_agreement >= 0.95,
    cosine >= 0.999,
    max_abs,
    against (host_eager_same_tokens)
  }
  gate net_win per request { ttft, tpot, stage_latency, against (host_eager) }
}
