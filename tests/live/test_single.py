"""One structure bound to one module, with its self-check and what it is certified by."""

from __future__ import annotations

import copy
import itertools

import flashrt_gen
import pytest
import torch
from torch import nn
from transformers import LlamaConfig
from transformers.models.gemma.modeling_gemma import GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaRMSNorm
from transformers.models.siglip.modeling_siglip import SiglipMLP, SiglipVisionConfig

from frtspec.live.single import get
from frtspec.runtime import FallbackWarning, Refusal, receipt

CONFIG = LlamaConfig(hidden_size=64, intermediate_size=128)
VISION = SiglipVisionConfig(hidden_size=64, intermediate_size=128)
EMULATED = {"scheme": "fp8_static", "rungs": ("emulate",)}


def made(kind, *args) -> nn.Module:
    torch.manual_seed(0)
    return kind(*args).eval().requires_grad_(False)


def inputs(count: int = 3, *, width: int = 64, seed: int = 1) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(2, 5, width, generator=generator) for _ in range(count)]


@pytest.mark.parametrize(
    ("structure", "module", "scheme"),
    [
        ("decoder_ffn", made(LlamaMLP, CONFIG), "fp8_static"),
        ("linear_proj", made(nn.Linear, 64, 96), "fp8_static"),
        ("norm_fused", made(nn.LayerNorm, 64), "bf16_structural"),
        ("norm_fused", made(GemmaRMSNorm, 64), "bf16_structural"),
        ("vision_ffn", made(SiglipMLP, VISION), "fp8_static"),
    ],
    ids=["gated FFN", "projection", "LayerNorm", "Gemma norm", "plain FFN"],
)
def test_a_part_stands_for_its_module(structure, module, scheme) -> None:
    batches = inputs()
    before = copy.deepcopy(module.state_dict())
    part = get(structure).bind(
        module, calibration=batches, scheme=scheme, rungs=("emulate",), held_out=inputs(2, seed=2)
    )
    ours, theirs = part(batches[0]), module(batches[0])
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    assert not torch.equal(ours, theirs)
    assert torch.cosine_similarity(ours.flatten(), theirs.flatten(), dim=0) > 0.995
    found = part.certification
    assert found.structure.startswith(structure) and found.label == "held-out"
    assert found.samples == 2 and found.rows == {10: 3} and found.rung == "emulate"
    assert found.metrics["worst_sample_cosine"] <= found.metrics["cosine"]
    assert part.ledger().calls >= 1 and part.ledger().fallbacks == 0
    assert receipt.canonical(found.to_json())
    for name, value in module.state_dict().items():
        assert torch.equal(value, before[name])
    assert type(module) is not type(part) and not hasattr(module, "certification")


def test_the_generated_package_has_the_same_door() -> None:
    module, batches = made(nn.Linear, 64, 96), inputs()
    ours = flashrt_gen.get("linear_proj").bind(module, calibration=batches, **EMULATED)
    theirs = get("linear_proj").bind(module, calibration=batches, **EMULATED)
    assert torch.equal(ours(batches[0]), theirs(batches[0]))
    assert ours.certification.specs == theirs.certification.specs
    with pytest.raises(Refusal, match="decoder_ffn") as caught:
        flashrt_gen.get("decoder_fnn")
    assert caught.value.code == "option.structure"


def test_with_the_norm_the_whole_boundary_judges() -> None:
    module, norm = made(LlamaMLP, CONFIG), made(LlamaRMSNorm, 64)
    streams = inputs()
    bare = get("decoder_ffn").bind(module, calibration=[norm(x) for x in streams], **EMULATED)
    whole = get("decoder_ffn").bind(module, calibration=streams, norm=norm, **EMULATED)
    added = get("decoder_ffn").bind(
        module, calibration=[norm(x) for x in streams], residual=streams, **EMULATED
    )
    assert [p.certification.gate for p in (bare, whole, added)] == ["seam", "boundary", "boundary"]
    cosine = [p.certification.metrics["cosine"] for p in (bare, whole, added)]
    assert cosine[0] < cosine[1] == pytest.approx(cosine[2], abs=1e-6)
    assert [b.value for b in whole.certification.bounds if b.op] == [0.999]


def test_the_input_may_be_keyword_arguments_and_streamed() -> None:
    module = made(nn.Linear, 64, 96)
    stream = ({"input": x} for x in itertools.cycle(inputs()))
    part = get("linear_proj").bind(module, calibration=stream, max_samples=2, **EMULATED)
    assert part.certification.rows == {10: 2}
    assert part.certification.label == "fit residual"


def test_a_call_it_is_not_for_runs_the_module() -> None:
    module = made(nn.Linear, 64, 96)
    part = get("linear_proj").bind(module, calibration=inputs(), **EMULATED)
    x = inputs(1)[0].double()
    with pytest.warns(FallbackWarning), pytest.raises(RuntimeError):
        part(x)  # as the module itself would: its weights are float32
    assert part.ledger().fallbacks == 1


class Doubled(nn.Module):
    """Computes twice what its projection does: no structure."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(64, 64)

    def forward(self, x):
        return 2 * self.inner(x)


NOISE = torch.randn(64, 96, generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize(
    ("structure", "module", "options", "code"),
    [
        ("decoder_fnn", made(nn.Linear, 64, 96), {}, "option.structure"),
        ("decoder_ffn", made(nn.Linear, 64, 96), {}, "part.module"),
        ("linear_proj", made(Doubled), {}, "part.module"),
        ("linear_proj", made(nn.Linear, 64, 96).train(), {}, "host.training"),
        ("linear_proj", made(nn.Linear, 64, 96), {"calibration": []}, "samples.empty"),
        ("linear_proj", made(nn.Linear, 64, 96), {"calibration": NOISE}, "option.calibration"),
        (
            "linear_proj",
            made(nn.Linear, 64, 96),
            {"calibration": [torch.zeros(1, 64)]},
            "calibration.zero",
        ),
        ("linear_proj", made(nn.Linear, 64, 96), {"scheme": "none"}, "part.scheme"),
        ("linear_proj", made(nn.Linear, 64, 96), {"floors": {"cosine": 0.9999999}}, "part.gate"),
        ("linear_proj", made(nn.Linear, 64, 96), {"variant": {"bias": "none"}}, "part.variant"),
        ("linear_proj", made(nn.Linear, 64, 96), {"residual": []}, "option.residual"),
    ],
)
def test_what_does_not_hold_is_refused(structure, module, options, code) -> None:
    given = {"calibration": inputs(), **EMULATED, **options}
    before = {
        name: (value.data_ptr(), value.clone()) for name, value in module.state_dict().items()
    }
    with pytest.raises(Refusal) as caught:
        get(structure).bind(module, **given)
    assert caught.value.code == code and caught.value.fix
    for name, value in module.state_dict().items():
        assert value.data_ptr() == before[name][0] and torch.equal(value, before[name][1])
    assert not module._forward_hooks and not module._forward_pre_hooks


def test_a_part_is_not_moved_copied_or_trained() -> None:
    part = get("linear_proj").bind(made(nn.Linear, 64, 96), calibration=inputs(), **EMULATED)
    for act in (lambda: part.to(torch.float64), lambda: copy.deepcopy(part), part.train):
        with pytest.raises(Refusal, match="detach|copied|moved"):
            act()
