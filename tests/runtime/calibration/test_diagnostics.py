"""What calibration tells of the values that it saw: in the report and in the receipt."""

from __future__ import annotations

import dataclasses
from typing import ClassVar

import pytest
import torch

from frtspec import runtime as rt
from frtspec.runtime import receipt
from frtspec.runtime.observation import notes, observe
from tests.runtime import hosts_small as small
from tests.runtime.calibration.support import BATCHES, build


def told(plan: rt.Plan, text: str) -> list[str]:
    """The calibration's notes with this text, which report and receipt have word by word."""
    report, kept = plan.explain(format="text"), plan.receipt["plan"]["calibration"]["diagnostics"]
    found = [note for note in plan.calibration.diagnostics if text in note]
    assert all(note in report and note in kept for note in found)
    assert receipt.verify(plan.receipt)
    return found


def test_a_sample_far_above_the_others_is_told() -> None:
    model, calls = small.tiny_decoder(), []

    def loud(_module, args):
        calls.append(1)
        return (args[0] * (40 if len(calls) == 2 else 1),)

    handle = model.layers[0].mlp.down_proj.register_forward_pre_hook(loud)
    seen = observe.observe(
        model,
        small.tiny_seats(model),
        {"ffn[0]": {"act_after_mul": (rt.Stat("amax", "tensor"),)}},
        [lambda ids=ids: model(ids) for ids in BATCHES],
    )
    handle.remove()
    (note,) = (n for n in seen.notes if n.kind == "dispersion")
    assert (note.seat, note.point) == ("ffn[0]", "act_after_mul") and note.value > 10


def test_dispersion_reaches_report_and_receipt(monkeypatch) -> None:
    with build(small.tiny_decoder()) as plain:
        assert not told(plain, "the largest sample") and not told(plain, "saturate")
    monkeypatch.setattr(notes, "DISPERSION", 1.1)  # norms keep these samples close together
    with build(small.tiny_decoder(), percentile=50.0) as plan:
        spread = told(plan, "times the median (")
        assert spread and all(note.split()[0] in plan.bound for note in spread)
        assert told(plan, "values above it saturate")


def test_a_point_far_above_the_others_of_the_host_is_told() -> None:
    model = small.tiny_decoder()
    with torch.no_grad():
        model.layers[1].mlp.up_proj.weight *= 300
    with build(model) as plan:
        (note,) = told(plan, "points with one scale")
        assert note.startswith("ffn[1] act_after_mul: its magnitude (")
    with build(small.tiny_decoder()) as plain:
        assert not told(plain, "points with one scale")


@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_the_ceiling_is_where_it_says(factor: float) -> None:
    class Seen:
        amaxes_: ClassVar = {("a", "p"): 1.0, ("b", "p"): 1.0, ("c", "p"): notes.CEILING * factor}

        def amax(self, seat: str, point: str) -> float:
            return self.amaxes_[seat, point]

        def stats(self, seat: str, point: str) -> tuple[rt.Stat, ...]:
            return (rt.Stat("amax", "tensor"),)

    found = notes.ceilings(Seen(), Seen.amaxes_)
    assert [(n.seat, n.kind) for n in found] == ([("c", "ceiling")] if factor > 1 else [])


def test_contents_and_facts_of_calls_are_kept_apart_from_statistics() -> None:
    """The same tensor at three points: a statistic reduces it, content keeps its values, an
    observation what it looked like and no value."""
    model = small.tiny_decoder()
    plain = small.seat_named(model, "o[0]")
    kinds = {**plain.structure.points, "held": "content", "look": "observation"}
    place = plain.points["x"]
    seat = dataclasses.replace(
        plain,
        structure=dataclasses.replace(plain.structure, points=kinds),
        points={**plain.points, "held": place, "look": place},
    )
    wanted = {"o[0]": {"x": (rt.Stat("amax", "tensor"),)}}
    thunks = [lambda ids=ids: model(ids) for ids in BATCHES]
    seen = observe.observe(model, [seat], wanted, thunks, percentile=1.0)
    assert seen.points("o[0]") == ("x",) and seen.values("o[0]", "x") == []
    held, look = seen.values("o[0]", "held"), seen.values("o[0]", "look")
    assert [p.shapes for p in held] == [p.shapes for p in look] and len(look) == len(BATCHES)
    assert all(p.contents is None and p.dtypes == [torch.float32] for p in look)
    largest = [float(p.contents[0].abs().max()) for p in held if p.contents]
    assert largest == list(seen.per_sample("o[0]", "x"))[: len(largest)] and largest
    assert seen.amax("o[0]", "x") < max(seen.per_sample("o[0]", "x"))  # no percentile on contents
