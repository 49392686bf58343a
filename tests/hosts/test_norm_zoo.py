"""Norm conventions, each bound alone: told by what the module computes, whatever its name."""

from __future__ import annotations

import pytest
import torch
from flashrt_gen import get
from flashrt_gen.structures import norm_fused_v2 as norm_fused
from torch import Tensor, nn
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from frtspec.runtime import Refusal

SIZE = 64


def inputs() -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [3 * torch.randn(2, 5, SIZE, generator=generator) for _ in range(3)]


def bound(norm: nn.Module) -> nn.Module:
    """What it computes, in float32, rounded once to bfloat16."""
    norm = norm.eval().requires_grad_(False)
    return get("norm_fused").bind(
        norm, calibration=inputs(), scheme="bf16_structural", rungs=("torch", "emulate")
    )


def weighted(norm: nn.Module, value: float | None = None) -> nn.Module:
    torch.manual_seed(0)
    for parameter in norm.parameters():
        parameter.data.normal_(std=0.5) if value is None else parameter.data.fill_(value)
    return norm


def normed(x: Tensor, eps: float = 1e-6) -> Tensor:
    return x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + eps)


class Renamed(LlamaRMSNorm):
    """Named like nothing that is known."""


class SecretlyOffset(LlamaRMSNorm):
    """Named like Llama's, computing Gemma's."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        return (normed(hidden_states) * (1 + self.weight.float())).to(hidden_states.dtype)


SecretlyOffset.__name__ = SecretlyOffset.__qualname__ = "LlamaRMSNorm"


@pytest.mark.parametrize(
    ("norm", "variants"),
    [
        (LlamaRMSNorm(SIZE), {"norm": "rms", "norm_weight_mode": "direct"}),
        (Renamed(SIZE), {"norm": "rms", "norm_weight_mode": "direct"}),
        (GemmaRMSNorm(SIZE), {"norm": "rms", "norm_weight_mode": "offset"}),
        (SecretlyOffset(SIZE), {"norm": "rms", "norm_weight_mode": "offset"}),
        (nn.LayerNorm(SIZE), {"norm": "layer"}),
    ],
    ids=lambda value: type(value).__qualname__ if isinstance(value, nn.Module) else "",
)
def test_a_norm_binds_by_what_it_computes(norm: nn.Module, variants: dict[str, str]) -> None:
    part = bound(weighted(norm))
    assert variants.items() <= dict(part.certification.variants).items()
    for x in inputs():
        with torch.no_grad():
            ours, theirs = part(x), norm(x)
        assert ours.dtype == theirs.dtype
        torch.testing.assert_close(ours, theirs, rtol=2**-8, atol=1e-6)  # bfloat16's half step
    assert part.ledger().fallbacks == 0


def test_a_small_offset_is_added_in_float32() -> None:
    """1 + 0.0039 is 1 in bfloat16, whose steps above 1 are 0.0078."""
    norm = weighted(GemmaRMSNorm(SIZE), 0.0039).eval().requires_grad_(False)
    (x, *_) = inputs()
    kept = (normed(x, norm.eps) * (1 + norm.weight.float())).bfloat16()
    lost = (normed(x, norm.eps) * (1 + norm.weight.bfloat16())).bfloat16()
    assert not torch.equal(kept, lost)
    before = norm.weight.clone()
    for _ in range(2):  # bound again, it is added once
        assert torch.equal(bound(norm)(x).bfloat16(), kept)
    assert torch.equal(norm.weight, before)
    ours, low = norm.bfloat16(), x.bfloat16()
    theirs = norm_fused.reference(
        low,
        w=ours.weight,
        norm="rms",
        norm_weight_mode="offset",
        norm_rounding="after_weight",
        eps=ours.eps,
    )
    assert torch.equal(theirs, ours(low))
    assert not torch.equal(theirs, (normed(low, ours.eps) * (1 + ours.weight)).bfloat16())


class Squared(LlamaRMSNorm):
    def forward(self, hidden_states: Tensor) -> Tensor:
        return (normed(hidden_states) * self.weight.float() ** 2).to(hidden_states.dtype)


class EpsOutside(LlamaRMSNorm):
    """eps is added to the root, and matters for what is small."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        x = hidden_states.float()
        root = x.pow(2).mean(-1, keepdim=True).sqrt() + 1.0
        return (x / root * self.weight.float()).to(hidden_states.dtype)


class HalfNormed(LlamaRMSNorm):
    """Normalises the first half of the channels alone."""

    def forward(self, hidden_states: Tensor) -> Tensor:
        half = hidden_states.shape[-1] // 2
        first, rest = hidden_states[..., :half], hidden_states[..., half:]
        y = torch.cat([normed(first), rest.float()], -1) * self.weight.float()
        return y.to(hidden_states.dtype)


@pytest.mark.parametrize("kind", [Squared, EpsOutside, HalfNormed])
def test_a_convention_that_no_variant_has_is_refused(kind: type[nn.Module]) -> None:
    with pytest.raises(Refusal) as caught:
        bound(weighted(kind(SIZE)))
    assert caught.value.code == "part.module" and kind.__name__ in caught.value.what


class Adaptive(nn.Module):
    """An RMS norm whose scale is of the sample, as AdaRMS has it."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.dense = nn.Linear(size, size)

    def forward(self, x: Tensor, cond: Tensor) -> Tensor:
        return (normed(x) * (1 + self.dense(cond)[:, None].float())).to(x.dtype)


def test_a_scale_of_the_sample_is_no_weight() -> None:
    norm = weighted(Adaptive(SIZE)).eval().requires_grad_(False)
    calls = [(x, x[:, 0]) for x in inputs()]
    with pytest.raises(Refusal) as caught:
        get("norm_fused").bind(norm, calibration=calls, scheme="bf16_structural")
    assert caught.value.code == "part.module" and "Adaptive" in caught.value.what


def test_a_norm_without_weights_is_refused_by_name() -> None:
    norm = nn.LayerNorm(SIZE, elementwise_affine=False)
    with pytest.raises(Refusal) as caught:
        bound(norm)
    assert caught.value.code == "part.module" and "LayerNorm" in caught.value.what
