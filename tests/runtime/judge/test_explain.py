"""What a plan says: every seat once, reasons whole, on a terminal and piped."""

from __future__ import annotations

import re
import sys

import pytest

from frtspec import runtime as rt
from frtspec.runtime.records import Failure, SeatRecord
from frtspec.runtime.reporting import explain
from frtspec.runtime.units import size_text
from tests.runtime import hosts_small as small

LONG = "the reason goes on and on, " * 20 + "and ends here"


@pytest.fixture
def plan():
    """A plan with a seat in every state: two bound, some kept, two refused, one failed."""
    model = small.tiny_decoder()
    plan = rt.attach(
        small.BINDING,
        model,
        model,
        scheme="fp8_static",
        rungs=("emulate",),
        observations=small.token_batches(3),
        structures=("decoder_ffn",),
    )
    plan.detach()
    refused, worse, failed = (SeatRecord(plan.seat(n).seat) for n in ("o[0]", "o[1]", "qkv[0]"))
    refused.refuse(
        rt.Refusal(
            "rung.none",
            LONG,
            fix="try another rung",
            trail=(rt.TrailRow("hub x@v1", "kernel.arch", f"built for sm_120; {LONG}"),),
        )
    )
    worse.gates.append(rt.GateResult("saturation", "fail", "x reaches 9", metrics={"x": 9.0}))
    worse.refuse(rt.Refusal("calibration.saturated", "x reaches 9", fix="calibrate on more"))
    failed.fail(Failure("binding", "NameError: quantise", "Traceback …", ("qkv[0]",)))
    replaced = {record.name: record for record in (refused, worse, failed)}
    plan.seats = tuple(replaced.get(record.name, record) for record in plan.seats)
    return plan


def squeezed(text):
    """Letters only: what is left of a text when a table wraps it."""
    return re.sub(r"[^A-Za-z0-9]", "", re.sub(r"\x1b\[[0-9;]*m", "", text))


def test_every_seat_is_in_exactly_one_row(plan):
    text = explain.plain(explain.explanation_of(plan))
    rows = [line for line in text.splitlines() if line.split("  ")[0] in plan.counts]
    listed = []
    for row in rows:
        state, seats = re.split(r"\s{2,}", row)[:2]
        for part in seats.split(", "):
            family, first, last = re.fullmatch(r"(\w+)\[(\d+)(?:\.\.(\d+))?\]", part).groups()
            for number in range(int(first), int(last or first) + 1):
                listed.append((f"{family}[{number}]", state))
    assert sorted(listed) == sorted((r.name, r.state) for r in plan.seats)


def test_piped_text_is_plain_and_whole(plan, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    text = plan.explain()
    assert "\x1b" not in text and "\x00" not in text
    assert LONG in text and f"built for sm_120; {LONG}" in text
    assert "NameError: quantise" in text and "try another rung" in text
    assert all(line == line.rstrip() for line in text.splitlines())


def test_a_terminal_gets_a_table_with_the_same_words(plan, monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "120")
    drawn = plan.explain()
    assert "\x1b[" in drawn and "─" in drawn
    words = squeezed(drawn)
    for record in plan.seats:
        assert squeezed(record.seat.target) in words
    assert words.count(squeezed("and ends here")) == 2, "nothing is cut on a terminal either"


def test_the_worst_saturated_seat_is_on_top_of_the_refused(plan):
    refused = [r for r in explain.explanation_of(plan).rows if r.cells[0] == "refused"]
    assert [row.cells[1] for row in refused] == ["o[1]", "o[0]"]


def test_the_head_counts_the_states(plan):
    head = explain.explanation_of(plan).head[0]
    assert head == "tiny on TinyDecoder: 2 of 8 seats bound, 3 kept, 2 refused, 1 failed"


def test_nothing_claims_a_gain_where_speed_was_not_judged(plan):
    text = plan.explain() + plan.report()
    assert "not_applicable" in text
    assert not re.search(r"\d\.\d+x|faster|speed-?up", text)


def test_coverage_says_what_stays_on_the_host(plan):
    tail = "\n".join(explain.explanation_of(plan).tail)
    share = plan.coverage.share
    assert 0 < share < 1 and f"{share:.1%} of the host's" in tail
    assert f"{1 - share:.1%} of its weight traffic stays on the host" in tail
    assert "embed_tokens.weight" in tail
    on_host = sum(size for _, size in plan.coverage.rest)
    assert on_host + plan.coverage.by_state["bound"] == plan.coverage.total


def test_the_report_has_every_figure_with_its_bound(plan):
    text = plan.report()
    for gate in ("reference", "saturation", "parity", "boundary", "host"):
        assert re.search(rf"^  {gate} ", text, re.MULTILINE), gate
    assert "(>= 0.999)" in text and "seam: cosine" in text


def test_runs_of_seat_names_are_drawn_together():
    assert explain.names(["a[0]", "a[1]", "a[2]", "a[4]", "b", "c[7]"]) == "a[0..2], a[4], b, c[7]"
    assert explain.names(["a[1]", "b[2]"]) == "a[1], b[2]"
    assert explain.names([]) == ""


@pytest.mark.parametrize(
    "count, text", [(0, "0 B"), (1023, "1.02e+03 B"), (1536, "1.5 KiB"), (3 << 30, "3 GiB")]
)
def test_sizes_read_well(count, text):
    assert size_text(count) == text
