"""The structure's norm variants against the layers of transformers that they stand for.

The second half of a real decoder layer, from the residual stream to the residual stream,
is what `decoder_ffn` describes. In bfloat16 a wrong order of rounding or a weight that is
offset where it should be direct can't produce the same bits.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
import torch
import transformers
from flashrt_gen.structures import decoder_ffn_v1 as decoder_ffn
from torch import Tensor, nn

from hosts import tiny


@dataclass(frozen=True)
class Convention:
    """A host class and the variants that its binding would state."""

    kind: str
    activation: str
    norm_weight_mode: str
    norm_rounding: str

    @property
    def variants(self) -> dict[str, str]:
        return {
            "activation": self.activation,
            "norm_weight_mode": self.norm_weight_mode,
            "norm_rounding": self.norm_rounding,
            "conditioning": "none",
        }


LLAMA = Convention("Llama", "silu", "direct", "before_weight")
QWEN3 = Convention("Qwen3", "silu", "direct", "before_weight")
GEMMA = Convention("Gemma", "gelu", "offset", "after_weight")
CONVENTIONS = (LLAMA, QWEN3, GEMMA)

SIZES: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 1,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "rms_norm_eps": 1e-4,
}


def host(convention: Convention, dtype: torch.dtype) -> nn.Module:
    """A one-layer model; norm weights are away from 0 and 1 on purpose."""
    torch.manual_seed(2)
    config = getattr(transformers, f"{convention.kind}Config")(**SIZES)
    model = getattr(transformers, f"{convention.kind}ForCausalLM")(config)
    tiny.randomise(model)
    return model.to(dtype).eval()


@contextmanager
def recorded(layer: nn.Module) -> Iterator[dict[str, Tensor]]:
    """x, x_after_norm and y of the layer's second half, as it runs."""
    seen: dict[str, Tensor] = {}
    hooks = [
        layer.post_attention_layernorm.register_forward_pre_hook(
            lambda _, args: seen.__setitem__("x", args[0])
        ),
        layer.mlp.register_forward_pre_hook(
            lambda _, args: seen.__setitem__("x_after_norm", args[0])
        ),
        layer.register_forward_hook(lambda _m, _a, out: seen.__setitem__("y", out)),
    ]
    yield seen
    for hook in hooks:
        hook.remove()


def run(model: nn.Module) -> dict[str, Tensor]:
    tokens = torch.randint(64, (2, 16), generator=torch.Generator().manual_seed(0))
    with torch.no_grad(), recorded(model.model.layers[0]) as seen:
        model(input_ids=tokens)
    return seen


def reference(model: nn.Module, x: Tensor, variants: dict[str, str]) -> dict[str, Tensor]:
    layer = model.model.layers[0]
    seen: dict[str, Tensor] = {}
    with torch.no_grad():
        seen["y"] = decoder_ffn.reference(
            x,
            w_norm=layer.post_attention_layernorm.weight,
            w_gate=layer.mlp.gate_proj.weight.T,
            w_up=layer.mlp.up_proj.weight.T,
            w_down=layer.mlp.down_proj.weight.T,
            eps=model.config.rms_norm_eps,
            record=seen.__setitem__,
            **variants,
        )
    return seen


@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda c: c.kind)
def test_reference_is_the_host_layer_bit_for_bit_in_bfloat16(convention: Convention) -> None:
    model = host(convention, torch.bfloat16)
    theirs = run(model)
    ours = reference(model, theirs["x"], convention.variants)
    assert theirs["x"].dtype == torch.bfloat16
    assert torch.equal(ours["x_after_norm"], theirs["x_after_norm"])
    assert torch.equal(ours["y"], theirs["y"])


@pytest.mark.parametrize("convention", CONVENTIONS, ids=lambda c: c.kind)
def test_reference_is_the_host_layer_to_rounding_in_float32(convention: Convention) -> None:
    model = host(convention, torch.float32)
    theirs = run(model)
    ours = reference(model, theirs["x"], convention.variants)
    torch.testing.assert_close(ours["x_after_norm"], theirs["x_after_norm"], rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(ours["y"], theirs["y"], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("convention", "axis", "wrong"),
    [
        (LLAMA, "norm_rounding", "after_weight"),
        (QWEN3, "norm_rounding", "after_weight"),
        (GEMMA, "norm_rounding", "before_weight"),
        (LLAMA, "norm_weight_mode", "offset"),
        (GEMMA, "norm_weight_mode", "direct"),
        (GEMMA, "activation", "silu"),
    ],
    ids=lambda value: value.kind if isinstance(value, Convention) else value,
)
def test_every_other_convention_is_told_apart(
    convention: Convention, axis: str, wrong: str
) -> None:
    model = host(convention, torch.bfloat16)
    theirs = run(model)
    ours = reference(model, theirs["x"], {**convention.variants, axis: wrong})
    assert not torch.equal(ours["y"], theirs["y"])
    if axis != "activation":
        assert not torch.equal(ours["x_after_norm"], theirs["x_after_norm"])


def test_gemma3_norms_with_the_offset_before_its_mlp() -> None:
    """Gemma 3 has no full boundary, but its norm and its MLP are the structure's."""
    model = tiny.GEMMA3.model(torch.bfloat16)
    layer = model.model.layers[0]
    seen: dict[str, Tensor] = {}
    hooks = [
        layer.pre_feedforward_layernorm.register_forward_pre_hook(
            lambda _, args: seen.__setitem__("x", args[0])
        ),
        layer.mlp.register_forward_hook(
            lambda _, args, out: seen.update(x_after_norm=args[0], o=out)
        ),
    ]
    with torch.no_grad():
        model(**tiny.GEMMA3.samples(1)[0])
    for hook in hooks:
        hook.remove()
    ours: dict[str, Tensor] = {}
    with torch.no_grad():
        y = decoder_ffn.reference(
            seen["x"],
            w_norm=layer.pre_feedforward_layernorm.weight,
            w_gate=layer.mlp.gate_proj.weight.T,
            w_up=layer.mlp.up_proj.weight.T,
            w_down=layer.mlp.down_proj.weight.T,
            eps=model.config.rms_norm_eps,
            record=ours.__setitem__,
            **GEMMA.variants,
        )
    assert torch.equal(ours["x_after_norm"], seen["x_after_norm"])
    assert torch.equal(y, seen["x"] + seen["o"])
