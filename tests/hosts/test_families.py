"""Every binding of a transformers family against the real classes, built small.

A right host verifies clean: every path, slot, layout, dim, point and fact resolves, every
seat runs, and every reference computes what the host computes. A host that is another
one in one thing is refused, with both sides in the text.
"""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from frtspec.live.verify import problems, verify
from frtspec.live.verify_report import Problem, Report
from frtspec.runtime.observation import observe
from frtspec.runtime.spec import Stat
from hosts import factories, tiny
from hosts.tiny import Family

FAMILIES = pytest.mark.parametrize("family", tiny.FAMILIES, ids=lambda family: family.name)
DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])


def report_of(family: Family, model: nn.Module) -> Report:
    samples = factories.samples(family, next(model.parameters()).dtype)
    return verify(
        family.generated().HOST, model, lambda sample: model(**sample), observations=samples
    )


def told(report: Report) -> list[Problem]:
    return [problem for found in problems(report).values() for problem in found]


@FAMILIES
@DTYPES
def test_every_seat_is_verified(family: Family, dtype: torch.dtype) -> None:
    report = report_of(family, family.model(dtype))
    assert report.ok, report.text()
    assert Counter(seat.name.partition("[")[0] for seat in report.seats) == family.seats
    for seat in report.seats:
        assert sum(seat.calls) >= len(seat.calls) == report.samples == 2, seat.line()
        assert all(all(point.hits) for point in seat.points), seat.line()
        assert all(s.proof for s in seat.slots if s.shape is not None), seat.line()
        assert seat.reference is not None or seat.notes, seat.line()


def test_an_eager_host_has_no_seat_for_what_torchs_own_attention_is_handed() -> None:
    model = tiny.LLAMA.model()
    model.set_attn_implementation("eager")
    report = report_of(tiny.LLAMA, model)
    assert report.ok, report.text()
    names = Counter(seat.name.partition("[")[0] for seat in report.seats)
    assert names == {name: n for name, n in tiny.LLAMA.seats.items() if name != "attention"}


def test_a_statistic_of_a_point_that_the_host_shows_nowhere_is_refused_with_the_reason() -> None:
    family, model = tiny.QWEN3_MOE, tiny.QWEN3_MOE.model()
    (seat,) = (s for s in family.generated().HOST.seats(model) if s.name.startswith("experts"))
    asked = {seat.name: {"act_after_mul": (Stat("amax"),)}}
    (sample,) = family.samples(1)
    seen = observe.observe(model, [seat], asked, [lambda: model(**sample)])
    refusal = seen.refusals[seat.name]
    assert refusal.code == "calibration.no_place"
    assert "which this host shows nowhere: each expert's product is made and used" in refusal.what


# ---------------------------------------------------------------- hosts that are another one


def last_path(family: Family, model: nn.Module, kind: type[nn.Module]) -> str:
    """The last module of a kind that holds a weight of a seat."""
    found = []
    for seat in family.generated().HOST.seats(model):
        for weight in seat.slots.values():
            for item in weight if isinstance(weight, tuple) else (weight,):
                owner = (item.path or "").rpartition(".")[0]
                if isinstance(model.get_submodule(owner), kind):
                    found.append(owner)
    return found[-1]


def parent_of(model: nn.Module, path: str) -> tuple[nn.Module, str]:
    parent, _, name = path.rpartition(".")
    return model.get_submodule(parent), name


@FAMILIES
def test_a_renamed_module_is_told_with_what_is_there(family: Family) -> None:
    model = family.model()
    path = last_path(family, model, nn.Linear)
    parent, name = parent_of(model, path)
    parent._modules = {f"my_{k}" if k == name else k: m for k, m in parent._modules.items()}
    found = [problem for problem in told(report_of(family, model)) if problem.code == "host.path"]
    assert found
    assert all(path in problem.what and f"my_{name}" in problem.what for problem in found)


@FAMILIES
def test_another_layout_is_told_with_both(family: Family) -> None:
    """The same numbers, stored the other way round."""
    model = family.model()
    path = last_path(family, model, nn.Linear)
    parent, name = parent_of(model, path)
    linear = model.get_submodule(path)
    assert isinstance(linear, nn.Linear)
    other = Conv1D(linear.out_features, linear.in_features)
    with torch.no_grad():
        other.weight.copy_(linear.weight.T)
        other.bias.copy_(0 if linear.bias is None else linear.bias)
    parent._modules[name] = other.eval()
    text = "\n".join(problem.what for problem in told(report_of(family, model)))
    assert "is said to be out_in; a Conv1D stores in_out" in text, text


@FAMILIES
def test_another_class_is_told_with_both(family: Family) -> None:
    model = family.model()
    seats = [
        seat
        for seat in family.generated().HOST.seats(model)
        if any(e.fact == "class" and not e.of for e in seat.expects)
    ]
    for seat in seats:
        module = model.get_submodule(seat.path)
        module.__class__ = type(f"My{type(module).__name__}", (type(module),), {})
    report = report_of(family, model)
    for seat in seats:
        (expect,) = (e for e in seat.expects if e.fact == "class" and not e.of)
        (problem,) = (p for p in report.seat(seat.name).problems if p.path == seat.path)
        assert problem.code == "host.fact"
        assert problem.what == (f"expected class {expect.values[0]}, found My{expect.values[0]}"), (
            problem
        )
