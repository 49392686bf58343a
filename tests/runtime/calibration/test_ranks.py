"""Two processes that attach as one, over gloo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from frtspec import runtime as rt
from tests.runtime import hosts_small as small
from tests.runtime.calibration.support import BATCHES, EVERY, build, scales, with_stats

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each case came to on rank 0 and on rank 1."""
    folder = tmp_path_factory.mktemp("ranks")
    module = "tests.runtime.calibration.two_ranks"
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    both = [
        subprocess.Popen(
            [sys.executable, "-m", module, str(rank), str(folder)],
            cwd=ROOT,
            env=env,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        errors = [process.communicate(timeout=120)[1] for process in both]
    finally:
        for process in both:
            process.kill()
    assert [process.returncode for process in both] == [0, 0], "\n".join(errors)
    found = [json.loads((folder / f"{rank}.json").read_text()) for rank in range(2)]
    return {case: (found[0][case], found[1][case]) for case in found[0]}


@pytest.mark.parametrize("case, percentile", [("united", 99.9), ("percentile", 60.0)])
def test_two_ranks_measure_what_one_process_would(ranks, case, percentile):
    zero, one = ranks[case]
    assert zero["scales"] == one["scales"] and zero["bound"] == one["bound"] != []
    alone = build(small.tiny_decoder(), BATCHES, with_stats(*EVERY), percentile=percentile)
    assert zero["scales"] == {"/".join(k): v for k, v in scales(alone).items()}
    assert zero["calibration"] == one["calibration"]
    assert zero["calibration"][:3] == [len(BATCHES), 2, "measured"]


def test_one_ranks_refusal_is_everyones_and_names_it(ranks):
    zero, one = ranks["never_called"]
    assert set(zero["bound"]) == set(one["bound"]) and zero["bound"]
    assert not any(name.endswith("[1]") for name in zero["bound"])
    state, code, reason = zero["seats"]["ffn[1]"]
    assert (state, code) == ("refused", "host.never_called") and "on rank 1: " in reason


def test_a_gate_of_one_rank_counts_for_all(ranks):
    zero, one = ranks["gate"]
    assert zero["bound"] == one["bound"] and "ffn[1]" in zero["bound"]
    assert "ffn[0]" not in zero["bound"]
    state, code, reason = zero["seats"]["ffn[0]"]
    assert (state, code) == ("refused", "ranks.seat")
    assert "on rank 1" in reason and "cosine 0.5 [gate.boundary]" in reason
    assert one["seats"]["ffn[0]"][1] == "gate.boundary"


def test_different_hosts_and_options_are_refused_on_both(ranks):
    for side in ranks["other_weights"]:
        assert side["code"] == "ranks.key" and "rank 1 was made for" in side["what"]
        assert "weights is" in side["what"] and side["seat_modules"] == 0
    for side in ranks["other_options"]:
        assert side["code"] == "ranks.options"
        assert "percentile is 100.0 on rank 1 and 99.0 on rank 0" in side["what"]


def test_a_fault_on_one_rank_ends_both_and_nothing_stays(ranks):
    zero, one = ranks["fault"]
    assert one["code"] == "ValueError" and one["what"] == "a broken loader"
    assert zero["code"] == "ranks.failed"
    assert "rank 1: ValueError: a broken loader" in zero["what"]
    assert zero["seat_modules"] == one["seat_modules"] == 0


def test_a_rank_that_cannot_activate_takes_the_others_back(ranks):
    zero, one = ranks["activation"]
    assert one["code"] == "KeyboardInterrupt"
    assert zero["code"] == "ranks.failed" and "rank 1: KeyboardInterrupt" in zero["what"]
    assert zero["seat_modules"] == one["seat_modules"] == 0


def test_a_calibration_that_only_one_has_is_used_by_none(ranks):
    for side in ranks["one_has_a_file"]:
        assert side["calibration"][:3] == [len(BATCHES), 2, "measured"] and side["bound"]


def test_a_group_needs_processes():
    with pytest.raises(rt.Refusal) as caught:
        build(small.tiny_decoder(), group="world")
    assert caught.value.code == "option.group"
