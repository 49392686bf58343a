"""A seat that one forward calls several times is judged at every call: no good step hides a
bad one, and what is kept for it is bounded."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from frtspec import runtime as rt
from frtspec.runtime import receipt
from frtspec.runtime.observation import capture as captures
from frtspec.runtime.observation import pointrecorder
from frtspec.runtime.observation.capture import Capture
from frtspec.runtime.observation.keeping import Keeping
from frtspec.runtime.observation.observe import observe
from frtspec.runtime.spec import Boundary, InputOf, OutputOf
from tests.runtime import hosts_small as small
from tests.runtime.bind.support import watch

STEPS = 6
TINY = 2.0**-24
"""Times the calibrated magnitude: every code of it is zero in E4M3."""


def loop(model, scales, *, around=None):
    """A forward that runs one projection once a step, each at its own magnitude. What goes out
    is the sum, in which a small step does not show."""

    def forward(ids):
        projection, hidden = model.layers[0].self_attn.o_proj, model.embed_tokens(ids)
        if around is not None:
            around(hidden)
        return sum(projection(hidden * scale) for scale in scales)

    return forward


def attach(scales, **options):
    model = small.tiny_decoder()
    options = {"observations": small.token_batches(3), **options}
    return rt.attach(
        small.BINDING,
        model,
        loop(model, scales),
        scheme="fp8_static",
        rungs=("emulate",),
        structures=("linear_proj",),
        **options,
    )


def scales_of(bad):
    return [TINY if step == bad else 1.0 for step in range(STEPS)]


# ---------------------------------------------------------------- judged call by call


@pytest.mark.filterwarnings("ignore::frtspec.runtime.NothingBoundWarning")
@pytest.mark.parametrize("held_out", [None, 2])
@pytest.mark.parametrize("bad", [0, 3, STEPS - 1])
def test_a_step_that_is_bad_alone_refuses_the_seat_and_is_named(bad, held_out):
    apart = None if held_out is None else small.token_batches(held_out, seed=9)
    plan = attach(scales_of(bad), held_out=apart)
    record = plan.seat("o[0]")
    assert record.code == "gate.boundary", record.reason
    assert f"(in call {bad} of {STEPS} judged)" in record.reason
    found = record.gate("boundary").calls
    low = [row.call for row in found if row.metrics["cosine"] < 0.5]
    assert [row.call for row in found] == list(range(STEPS)) and low == [bad]
    assert receipt.verify(plan.receipt)


def test_every_step_is_in_the_record_and_the_worst_is_the_figure():
    plan = attach([2.0**-step for step in range(STEPS)])
    record = plan.seat("o[0]")
    assert record.state == "bound", record.reason
    for name in ("reference", "boundary"):
        result = record.gate(name)
        assert [row.call for row in result.calls] == list(range(STEPS))
        assert "every call of a sample judged by itself" in result.notes
    boundary = record.gate("boundary")
    cosines = [row.metrics["cosine"] for row in boundary.calls]
    assert boundary.metrics["cosine"] == min(cosines) < max(cosines)
    ratios = [row.metrics["x"] for row in record.gate("saturation").calls]
    assert ratios == pytest.approx([ratios[0] * 2.0**-step for step in range(STEPS)])
    told = plan.receipt["metrics"]["seats"]["o[0]"]
    assert [row["call"] for gate in told for row in gate["calls"]].count(STEPS - 1) == 3
    assert receipt.verify(plan.receipt)


def test_a_seat_that_is_called_once_has_no_figures_by_call():
    record = attach([1.0]).seat("o[0]")
    assert record.state == "bound" and all(result.calls == () for result in record.gates)


def test_a_long_loop_is_judged_in_part_and_says_how_much():
    plan = attach([1.0] * 50, observations=small.token_batches(1))
    (note,) = [n for n in plan.seat("o[0]").gate("boundary").notes if "calls" in n]
    assert note == "26 of 50 calls, first and last, of a sample judged by itself"
    clipping = plan.seat("o[0]").gate("saturation").calls
    assert len(clipping) == pointrecorder.CALLS + 1


# ---------------------------------------------------------------- what is kept


def kept(capture, steps, samples=3, around=None, model=None):
    model = model or small.tiny_decoder()
    seat = small.seat_named(model, "o[0]")
    forward = loop(model, [1.0] * steps, around=around)
    batches = small.token_batches(samples)
    thunks = [lambda ids=ids: forward(ids) for ids in batches]
    found = captures_of(model, seat, thunks, capture)
    return Counter(c.call for c in found), found


def captures_of(model, seat, thunks, capture):
    return observe(model, [seat], {}, thunks, capture=capture).captured(seat.name)


def test_later_calls_have_fewer_rows_and_come_of_the_first_samples():
    counts, found = kept(Capture(samples=3, calls=8, max_rows=12, later_rows=4), steps=5)
    assert counts == {0: 3, 1: 2, 2: 2, 3: 2, 4: 2}
    rows = {c.call: c.seat_inputs[0].shape[0] for c in found}
    assert rows == {0: 12, 1: 4, 2: 4, 3: 4, 4: 4} and {c.calls for c in found} == {5}


def test_memory_for_later_calls_is_a_bound():
    """In and out of four rows of 32 float32 are 1 KiB a call."""
    room = {"o[0]": 3 * 1024}
    capture = Capture(samples=1, calls=64, max_rows=12, later_rows=4, later_bytes=room)
    counts, found = kept(capture, steps=20, samples=1)
    strided = [c for c in found if 0 < c.call < 19]
    size = sum(x.numel() * 4 for c in strided for x in (c.seat_inputs[0], c.seat_outputs))
    assert sorted(counts) == [0, 8, 16, 19] and size <= 3 * 1024


def test_the_budget_leaves_the_first_calls_what_they_had():
    model = small.tiny_decoder()
    seats = small.tiny_seats(model)
    parameters = {n: (p.numel(), p.dtype) for n, p in model.named_parameters()}
    found = captures.budget(seats, parameters, 8)
    assert (found.samples, found.calls, found.max_rows) == (8, captures.CALLS, captures.ROWS[1])
    shares = sum(found.later_bytes.values()) * found.later_samples
    assert 0.99 * captures.LATER_BYTES < shares <= captures.LATER_BYTES


def test_places_that_see_other_numbers_of_tensors_leave_the_first_call():
    """What lies at a place whose module serves others too is not known to belong to a call."""
    model = small.tiny_decoder()
    model.layers[0].self_attn.shared = nn.Identity()
    seat = small.seat_named(model, "o[0]")
    boundary = Boundary(
        path=seat.path,
        inputs={"x": InputOf("layers.0.self_attn.shared")},
        outputs={"y": OutputOf(seat.path)},
    )
    forward = loop(model, [1.0] * 4, around=lambda h: model.layers[0].self_attn.shared(h))
    thunks = [lambda ids=ids: forward(ids) for ids in small.token_batches(2)]
    found = captures_of(model, replace(seat, boundary=boundary), thunks, Capture(calls=8))
    assert [(c.call, c.calls) for c in found] == [(0, 4), (0, 4)]


def test_one_call_is_what_is_kept_unless_more_are_asked_for():
    assert kept(Capture(samples=2), steps=5)[0] == {0: 2}
    assert [c.call for c in watch(small.tiny_decoder()).captured("ffn[0]")] == [0, 0, 0]


# ---------------------------------------------------------------- the choice


@given(
    st.integers(2, 9),
    st.lists(st.integers(1, 50), min_size=1, max_size=120),
    st.one_of(st.none(), st.integers(0, 300)),
)
def test_calls_are_spread_evenly_from_the_first_to_the_last_within_both_bounds(limit, sizes, room):
    keeping, held = Keeping(limit, room), {}
    for call, size in enumerate(sizes):
        if keeping.wants(call):
            held[call] = size
        for gone in keeping.given_up(held):
            del held[gone]
        assert len(held) <= limit + 2
    for gone in keeping.given_up(held, ended=True):
        del held[gone]
    last = len(sizes) - 1
    strided = [c for c in held if c % keeping.stride == 0]
    assert strided == list(range(0, len(sizes), keeping.stride)), "evenly, none left out"
    assert set(held) == {*strided, last}
    assert len(strided) <= limit or strided == [0]
    assert room is None or sum(held[c] for c in strided if c) <= room
    if len(sizes) <= limit and room is None:
        assert list(held) == list(range(len(sizes))), "all of them while they fit"
