"""Bindings of lerobot's policies on lerobot's own classes, in an overlay of their versions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.hosts import lerobot_overlay

pytestmark = pytest.mark.slow

RELEASE = "0.6.1"
"""The one release of the range that the bindings declare."""


def report(name: str, *what: str) -> dict[str, Any]:
    return lerobot_overlay.report(RELEASE, name, *what)


SEATS = {
    "pi05": Counter(
        dict.fromkeys(
            [
                "vision_norm1",
                "vision_qkv",
                "vision_attention",
                "vision_o",
                "vision_norm2",
                "vision_ffn",
            ]
            + ["prefix_qkv", "prefix_attention", "prefix_o", "prefix_ffn"]
            + ["expert_norm1", "expert_qkv", "expert_attention", "expert_o"]
            + ["expert_norm2", "expert_ffn"],
            2,
        )
        | dict.fromkeys(
            ["features", "expert_norm", "action_in", "time_in", "time_out", "action_out"], 1
        )
    ),
    "smolvla": Counter(
        dict.fromkeys(
            [
                "vision_norm1",
                "vision_qkv",
                "vision_attention",
                "vision_o",
                "vision_norm2",
                "vision_ffn",
            ]
            + ["expert_qkv", "cross_q", "cross_k", "cross_v"],
            2,
        )
        | dict.fromkeys(
            ["prefix_norm1", "prefix_qkv", "prefix_o", "prefix_norm2", "prefix_ffn"]
            + ["expert_norm1", "expert_o", "expert_norm2", "expert_ffn"],
            4,
        )
        | dict.fromkeys(["features", "state", "action_in", "time_in", "time_out", "action_out"], 1)
    ),
    "groot_n17": Counter(
        dict.fromkeys(
            [
                "vision_norm1",
                "vision_qkv",
                "vision_attention",
                "vision_o",
                "vision_norm2",
                "vision_ffn",
            ]
            + [
                "llm_norm1",
                "llm_qkv",
                "llm_o",
                "llm_norm2",
                "llm_ffn",
                "self_qkv",
                "cross_q",
                "cross_k",
                "cross_v",
            ],
            2,
        )
        | dict.fromkeys(["norm1", "o", "ff"], 4)
    ),
}
"""Seats of each name on the small models: layers that take turns share their names."""

ONCE = {"pi05": ("vision", "prefix", "features"), "smolvla": ("vision", "prefix", "features"),
        "groot_n17": ("vision", "llm")}  # fmt: skip
"""Seats that run once an observation; the others run at each of its two steps."""


@pytest.mark.parametrize("name", SEATS)
def test_everything_a_binding_says_is_so(name: str) -> None:
    found = report(name)
    told = [p for seat in found["seats"] for p in seat["problems"]] + found["problems"]
    assert told == []
    assert Counter(seat["name"].partition("[")[0] for seat in found["seats"]) == SEATS[name]
    for seat in found["seats"]:
        if not any("parts of the host" in note for note in seat["notes"]):
            assert seat["reference"] is not None, seat["name"]


@pytest.mark.parametrize("name", SEATS)
def test_what_runs_once_an_observation_and_what_at_each_step(name: str) -> None:
    for seat in report(name)["seats"]:
        once = seat["name"].startswith(ONCE[name]) or seat["name"] == "state"
        assert seat["calls"] == ([1, 1] if once else [2, 2]), seat["name"]


@pytest.mark.parametrize("name", SEATS)
def test_a_scan_finds_what_the_binding_names(name: str) -> None:
    found = report(name, "scan")
    assert found["missed"] == [] and found["unexplained"] == []
    told = [p for seat in found["verified"]["seats"] for p in seat["problems"]]
    assert told == [] and found["verified"]["ok"], found["draft"]


def test_a_tick_of_pi05_keeps_the_rules_of_its_pipeline() -> None:
    found = report("pi05", "tick")
    assert found["ok"], found["said"]
    assert found["stages"] == ["obs_encode", "action_denoise", "action_denoise"]
    assert found["modules"] == {
        "obs_encode": "PaliGemmaForConditionalGenerationWithPiGemma",
        "action_denoise": "PiGemmaForCausalLM",
    }
    assert found["distance"] < 1e-5
