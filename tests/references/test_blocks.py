"""Structures made of structures, and the norms in them: against flash-rt and against hosts."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from flash_rt.catalog.structures.decoder_block.reference import decoder_block_ref
from flashrt_gen.structures import (
    adaln_producer_v1,
    decoder_block_v1,
    decoder_ffn_v1,
    norm_fused_v2,
)
from hypothesis import given
from hypothesis import strategies as st
from reference_kit import BOTH, SLOW_BOX, few, leads, maker, same, seeds, sizes
from torch import Tensor, nn
from transformers.models.gemma3 import modeling_gemma3
from transformers.models.qwen3 import modeling_qwen3
from transformers.models.qwen3.configuration_qwen3 import Qwen3Config

PINNED = {"norm": "rms", "style": "scale_shift_gate", "epilogue": "none"}


@BOTH
@pytest.mark.parametrize("activation", ["gelu", "silu"])
@pytest.mark.parametrize("order", ["scale_first", "shift_first"])
@SLOW_BOX
@given(b=few, s=few, d=sizes, f=sizes, c=sizes, seed=seeds)
def test_the_gated_block_is_theirs(
    dtype: torch.dtype,
    activation: str,
    order: str,
    b: int,
    s: int,
    d: int,
    f: int,
    c: int,
    seed: int,
) -> None:
    """Theirs takes its sublayers as functions; ours are the structures in its slots."""
    make = maker(seed, dtype)
    x, cond = make(b, s, d), make(1, c)
    norms = [
        {
            "style_w": make(c, 3 * d) * c**-0.5,
            "style_b": make(3 * d),
            "norm_w": None if place else make(d),
            "style_order": order,
            "cond_activation": "none",
        }
        for place in range(2)
    ]
    ffn = {
        "w_gate": make(d, f) * d**-0.5,
        "w_up": make(d, f) * d**-0.5,
        "w_down": make(f, d) * f**-0.5,
        "activation": activation,
    }
    mixed = make(d, d) * d**-0.5

    def attention(h: Tensor) -> Tensor:
        return h @ mixed

    def norm(place: int) -> Any:
        def call(h: Tensor, cond: Tensor) -> tuple[Tensor, Tensor]:
            y, gate, _ = adaln_producer_v1.reference(h, cond, **norms[place], **PINNED)
            return y, gate

        return call

    theirs = decoder_block_ref(
        x,
        cond,
        norm_in=norm(0),
        attn=attention,
        norm_out=norm(1),
        ffn=partial(decoder_ffn_v1.mlp, **ffn),
    )
    ours = decoder_block_v1.reference(
        x,
        cond,
        norm_in=norms[0],
        norm_out=norms[1],
        ffn=ffn,
        attention=attention,
        norm="adaln_rms",
    )
    same(ours, theirs)


@BOTH
def test_the_plain_block_is_a_layer_of_qwen3(dtype: torch.dtype) -> None:
    config = Qwen3Config(
        hidden_size=32,
        intermediate_size=48,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        num_hidden_layers=1,
        attn_implementation="eager",
    )
    torch.manual_seed(0)
    layer = modeling_qwen3.Qwen3DecoderLayer(config, 0).to(dtype).eval()
    for norm in (layer.input_layernorm, layer.post_attention_layernorm):
        nn.init.normal_(norm.weight)
    x = torch.randn(2, 5, 32).to(dtype)
    turn = modeling_qwen3.Qwen3RotaryEmbedding(config)(x, torch.arange(5)[None])
    norms = [
        {
            "w": norm.weight,
            "norm_weight_mode": "direct",
            "norm_rounding": "before_weight",
            "eps": config.rms_norm_eps,
        }
        for norm in (layer.input_layernorm, layer.post_attention_layernorm)
    ]
    with torch.no_grad():
        theirs = layer(x, position_embeddings=turn)
        ours = decoder_block_v1.reference(
            x,
            plain_in=norms[0],
            plain_out=norms[1],
            ffn={
                "w_gate": layer.mlp.gate_proj.weight.T,
                "w_up": layer.mlp.up_proj.weight.T,
                "w_down": layer.mlp.down_proj.weight.T,
                "activation": "silu",
            },
            attention=lambda h: layer.self_attn(h, position_embeddings=turn, attention_mask=None)[
                0
            ],
            norm="rms",
        )
    same(ours, theirs)


def test_points_of_inner_structures_carry_their_slot() -> None:
    make = maker(0, torch.float32)
    norm = {"w": make(8), "norm_weight_mode": "offset", "norm_rounding": "after_weight"}
    ffn = {"w_gate": make(8, 6), "w_up": make(8, 6), "w_down": make(6, 8), "activation": "silu"}
    seen: list[str] = []
    decoder_block_v1.reference(
        make(1, 3, 8),
        plain_in=norm,
        plain_out=norm,
        ffn=ffn,
        attention=lambda h: h,
        norm="rms",
        record=lambda point, value: seen.append(point),
    )
    # The seam starts at `x_after_norm`: whoever calls it has that value already.
    assert seen == ["plain_in.x_in", "plain_out.x_in", "ffn.act_after_mul"]
    assert set(seen) <= set(decoder_block_v1.SPEC.points)


def test_what_the_block_settles_cannot_be_set_again() -> None:
    make = maker(0, torch.float32)
    norm = {"w": make(8), "norm_weight_mode": "offset", "norm_rounding": "after_weight"}
    with pytest.raises(ValueError, match="norm of plain_in is settled"):
        decoder_block_v1.reference(
            make(1, 3, 8),
            plain_in={**norm, "norm": "layer"},
            plain_out=norm,
            ffn={},
            attention=lambda h: h,
            norm="rms",
        )


@BOTH
@SLOW_BOX
@given(lead=leads, d=st.integers(2, 48), eps=st.sampled_from([1e-6, 1e-5]), seed=seeds)
def test_norm_fused_2_is_the_norm_of_each_family(
    dtype: torch.dtype, lead: tuple[int, ...], d: int, eps: float, seed: int
) -> None:
    """Qwen rounds before the weight, Gemma keeps it as an offset and rounds once."""
    make = maker(seed, dtype)
    x, w, b = make(*lead, d), make(d), make(d)
    qwen, gemma = modeling_qwen3.Qwen3RMSNorm(d, eps), modeling_gemma3.Gemma3RMSNorm(d, eps)
    for norm in (qwen, gemma):
        norm.to(dtype).weight.data.copy_(w)
    rms = partial(norm_fused_v2.reference, x, w=w, norm="rms", eps=eps)
    same(rms(norm_weight_mode="direct", norm_rounding="before_weight"), qwen(x))
    same(rms(norm_weight_mode="offset", norm_rounding="after_weight"), gemma(x))
    layer = norm_fused_v2.reference(
        x,
        w=w.float(),
        b=b.float(),
        norm="layer",
        norm_weight_mode="direct",
        norm_rounding="after_weight",
        eps=eps,
    )
    exact = nn.functional.layer_norm(x.double(), (d,), w.double(), b.double(), eps)
    near = 1e-4 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(layer.double(), exact, rtol=near, atol=near * 4)
