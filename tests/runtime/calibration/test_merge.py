"""Calibrations of several runs as one: what a single run over all samples gives."""

from __future__ import annotations

import dataclasses

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frtspec import runtime as rt
from frtspec.runtime.calibration import file as calibration_file
from frtspec.runtime.calibration.data import Passed, SeatData
from frtspec.runtime.calibration.statistics import KEPT, LEAST_ROWS, collector
from tests.runtime import hosts_small as small
from tests.runtime.calibration.support import BATCHES, EVERY, build, scales, with_stats

BINDING = with_stats(*EVERY)


def calibrated(batches, model=None, **options):
    plan = build(model or small.tiny_decoder(), batches, BINDING, **options)
    try:
        return plan.calibration.seal()
    finally:
        plan.detach()


@pytest.fixture(scope="module")
def halves():
    return calibrated(BATCHES[:1]), calibrated(BATCHES[1:])


def test_two_runs_are_as_one(halves):
    merged, whole = rt.Calibration.merge(*halves), calibrated(BATCHES)
    assert (merged.samples, merged.runs) == (len(BATCHES), 2)
    for name, seat in whole.seats.items():
        assert merged.seats[name].calls == seat.calls
        for point, data in seat.points.items():
            found = merged.seats[name].points[point]
            assert (found.hits, found.outside) == (data.hits, data.outside)
            for stat, state in data.statistics.items():
                for part, value in state.items():
                    torch.testing.assert_close(
                        found.statistics[stat][part], value, rtol=1e-12, atol=0
                    )


def test_a_merged_calibration_is_used_and_saved_like_any_other(halves, tmp_path):
    merged = rt.Calibration.merge(*halves)
    path = merged.save(tmp_path / "merged.safetensors")
    plan = build(small.tiny_decoder(), BATCHES[:1], BINDING, calibration=path, percentile=70.0)
    assert scales(plan) == scales(build(small.tiny_decoder(), BATCHES, BINDING, percentile=70.0))
    assert plan.calibration.runs == 2 and plan.receipt["plan"]["calibration"]["runs"] == 2


@settings(max_examples=40, deadline=None)
@given(
    stat=st.sampled_from(EVERY),
    sizes=st.lists(st.integers(1, 5), min_size=2, max_size=4),
    seed=st.integers(0, 999),
)
def test_the_order_of_merging_does_not_matter(stat, sizes, seed):
    generator = torch.Generator().manual_seed(seed)
    groups = [[torch.randn(3, 16, generator=generator) for _ in range(n)] for n in sizes]

    def of(groups):
        found = collector(stat)
        for value in (x for group in groups for x in group):
            found.see(value)
            found.add(found.close())
        return found

    joined = collector(stat)
    for group in reversed(groups):
        joined.absorb(of([group]).state())
    whole = of(groups)
    for percentile in (0.1, 50.0, 99.9, 100.0):
        torch.testing.assert_close(joined.value(percentile), whole.value(percentile))


def test_what_was_dropped_on_the_way_is_missed_by_the_merged_too():
    """Wide rows: a run keeps the top of its samples only."""
    width = KEPT // LEAST_ROWS
    stat = rt.Stat("amax", "channel")
    runs = [collector(stat), collector(stat)]
    for number in range(100):
        runs[number % 2].add(torch.full((width,), float(number)))
    joined = collector(stat)
    for run in runs:
        joined.absorb(run.state())
    assert joined.kept.count == 100
    assert float(joined.value(100.0)[0]) == 99.0
    assert joined.kept.reached(50.0) == pytest.approx(100 * (100 - LEAST_ROWS) / 99)
    assert float(joined.value(50.0)[0]) == 100 - LEAST_ROWS


def test_other_weights_do_not_merge(halves):
    other = calibrated(BATCHES, small.tiny_decoder(seed=3))
    with pytest.raises(rt.Refusal) as caught:
        rt.Calibration.merge(*halves, other)
    assert caught.value.code == "calibration.key" and "calibration 3" in caught.value.what
    assert caught.value.shape == {"differs": "weights"}


def test_other_seats_do_not_merge(halves):
    part = calibrated(BATCHES, structures=("linear_proj",))
    with pytest.raises(rt.Refusal) as caught:
        rt.Calibration.merge(halves[0], part)
    assert caught.value.code == "calibration.seats" and "ffn[0]" in caught.value.what


def test_a_refusal_of_one_run_is_that_of_all(halves):
    refused = {
        "code": "calibration.zero",
        "what": "all zero",
        "fix": "more traffic",
        "seat": "o[0]",
    }
    other = dataclasses.replace(halves[1], seats={**halves[1].seats, "o[0]": SeatData(refused)})
    for order in (halves[0], other), (other, halves[0]):
        merged = rt.Calibration.merge(*order).seats["o[0]"]
        assert merged.refusal["code"] == "calibration.zero" and not merged.points


# ---------------------------------------------------------------- captures


def test_captures_are_kept_apart_and_no_statistic_touches_them(halves, tmp_path):
    def with_captures(calibration, start):
        seen = tuple(
            Passed(("bfloat16",), ((2, 3),), 12, (torch.full((2, 3), float(start + k)).bfloat16(),))
            for k in range(2)
        )
        flags = (Passed(("int64",), ((1,),), 8),)
        seat = dataclasses.replace(
            calibration.seats["ffn[0]"], values={"steps": seen, "dtype": flags}
        )
        return dataclasses.replace(calibration, seats={**calibration.seats, "ffn[0]": seat})

    merged = rt.Calibration.merge(with_captures(halves[0], 0), with_captures(halves[1], 10))
    document, tensors = calibration_file.documented(merged)
    assert set(document["captures"]) == {"ffn[0]"}
    captured = {name for name in tensors if name.startswith("captures/")}
    assert captured == {"captures/ffn[0]/steps/0/0", "captures/ffn[0]/steps/1/0"}
    assert all(name.startswith("statistics/") for name in tensors.keys() - captured)
    loaded = rt.Calibration.load(merged.save(tmp_path / "c.safetensors")).seats["ffn[0]"].values
    assert [item.contents is not None for item in loaded["steps"]] == [True, True, False, False]
    assert torch.equal(loaded["steps"][1].contents[0], torch.ones(2, 3).bfloat16())
    assert loaded["dtype"] == merged.seats["ffn[0]"].values["dtype"]
