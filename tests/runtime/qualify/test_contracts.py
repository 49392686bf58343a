"""What the gate harness asks of references: that they give what their structures declare."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
from collections.abc import Callable
from types import ModuleType
from typing import Any

import flashrt_gen.gates
import pytest
import torch
from flashrt_gen.gates import decoder_block_v1 as block_gate
from flashrt_gen.gates import qk_norm_rope_v1 as rope_gate
from torch import Tensor

from frtspec.ir.words import BASELINES as WORDS
from frtspec.runtime import harness
from frtspec.runtime.gating import baselines
from frtspec.runtime.spec import StructureSpec

GATES = sorted(module.name for module in pkgutil.iter_modules(flashrt_gen.gates.__path__))


def gate(name: str) -> ModuleType:
    return importlib.import_module(f"flashrt_gen.gates.{name}")


@pytest.mark.parametrize("name", GATES)
def test_every_reference_gives_what_it_declares(name: str) -> None:
    """Each combination of variants, with all that is optional and with none of it."""
    module = gate(name)
    results = module.contract()
    combinations = {tuple(case.variants.items()) for case in module.cases()}
    assert {tuple(r.case.variants.items()) for r in results} == combinations
    assert [str(r) for r in results if r.verdict != "pass"] == []


def wrong(spec: StructureSpec, change: Callable[..., Any]) -> list[str]:
    """What is told of a reference that ``change`` makes wrong."""

    def reference(**given: Any) -> Any:
        return change(spec.reference(**given), given)

    spoiled = dataclasses.replace(spec, reference=reference)
    results = harness.contract(spoiled, [c for c in rope_gate.cases() if "v" in c.given][:1])
    return [r.reason for r in results if r.verdict == "failed"]


def in_place(result: tuple[Tensor, ...], given: dict[str, Any]) -> tuple[Tensor, ...]:
    given["q"].mul_(2)
    return result


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda r, _: (r[0], r[1], r[2].clone()), "v_out is not the storage of v"),
        (lambda r, _: (r[0], r[1], r[2].transpose(0, 1)), "v_out is not the storage of v"),
        (lambda r, _: (r[0][:, :1], r[1], r[2]), "not [B, T, Hq, D]"),
        (lambda r, _: (r[0] / 0, r[1], r[2]), "q_after_rope holds a NaN or an Inf"),
        (in_place, "the reference changed its input q"),
    ],
    ids=["copied", "viewed", "shape", "nan", "in place"],
)
def test_a_reference_that_does_something_else_fails(
    change: Callable[..., Any], reason: str
) -> None:
    (told,) = wrong(rope_gate.SPEC, change)
    assert reason in told


def test_an_impl_that_copies_what_it_should_hand_through_fails() -> None:
    spec = rope_gate.SPEC
    v = torch.randn(2, 3)
    assert harness.shared(spec, {"v": v}, (v, v, v)) == []
    assert harness.shared(spec, {"v": v}, (v, v, v + 0)) == ["v_out is not the storage of v"]
    assert harness.shared(spec, {}, (v, v, None)) == []


def test_a_block_is_run_with_its_structures_set_in_two_ways() -> None:
    first, last = block_gate.INNER
    assert first["norm_in"].variants["cond_activation"] == "none"
    assert last["norm_in"].variants["cond_activation"] == "silu"
    assert "norm_w" in first["norm_in"].given and "norm_w" not in last["norm_in"].given
    assert "ffn.F" in block_gate.SIZES[0]


# ---------------------------------------------------------------- what a gate is against


def test_every_word_of_a_latency_gate_has_an_arm() -> None:
    assert set(baselines.BASELINES) == set(WORDS)


def test_arms_run_or_say_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    module = gate("decoder_ffn_v1")
    (case, *_) = module.cases()

    def no_compiler(function: Any) -> Any:
        raise RuntimeError("no compiler here\nand more")

    monkeypatch.setattr(torch, "compile", no_compiler)
    arms = harness.arms(module.SPEC, case)
    assert list(arms) == ["torch_compile", "unfused_chain", "vendor"]
    assert callable(arms["unfused_chain"])
    assert arms["unfused_chain"]().shape[-1] == case.sizes["D"]
    assert arms["torch_compile"] == (
        "baseline_unavailable: torch.compile raised RuntimeError: no compiler here"
    )
    assert arms["vendor"] == (
        "baseline_unavailable: no library of the device's vendor declares this region"
    )
    host = harness.arms(gate("patch_projection_v1").SPEC, gate("patch_projection_v1").cases()[0])
    assert host["host_chain"].startswith("baseline_unavailable: there is no host here")


def test_a_compiled_arm_is_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    module = gate("decoder_ffn_v1")
    (case, *_) = module.cases()
    monkeypatch.setattr(torch, "compile", lambda function: function)
    arms = harness.arms(module.SPEC, case)
    assert torch.equal(arms["torch_compile"](), arms["unfused_chain"]())
