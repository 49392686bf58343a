"""The contract digest of a pipeline, and of its use, moves with the meaning and nothing else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.sema.helpers import analysed

ROOT = Path(__file__).parents[2]
TICK = (ROOT / "specs/pipelines/vla_tick_pipeline/v2.frt").read_text("utf-8")
DECODE = (ROOT / "specs/pipelines/autoregressive_decode_pipeline/v2.frt").read_text("utf-8")
EMBEDDED = sorted(set(re.findall(r"(\w+) version (\d)", (TICK + DECODE).replace("_pipeline", ""))))
STRUCTURES = [
    f"frt 1\nstructure {name} version {number} {{\n  dim M\n  in x [rows M] : host\n"
    "  out y [rows M] : host\n  reference { yield y = x }\n}\n"
    for name, number in EMBEDDED
]
"""What the pipelines embed, as small as it can be."""

USE = (Path(__file__).parent / "frames/use.frt").read_text("utf-8")
BOUND = USE.replace(
    "HERE\n",
    """  pipeline p version 1 {
    stage look at vision { window image = input of vision capture eager "at once" }
    stage act at head { capture graph policy greedy protect shallow_copy }
    loop run steps = config.steps
    cadence observation runs look
    cadence tick runs (look, act)
    coverage complete_hot_path {
      hot_path (a, b, c)
      segment a : structure in look { seats one }
      segment b : state_region in look { seam "its buffer" covers other }
      segment c : control in act { seam "the loop" }
    }
  }
""",
)


def swap(text: str, pair: tuple[str, str]) -> str:
    assert text.count(pair[0]) == 1, pair
    return text.replace(*pair)


def pipeline(text: str) -> str:
    analysis, syntax = analysed(text, *STRUCTURES)
    assert syntax == () and analysis.diagnostics == (), analysis.diagnostics
    (found,) = analysis.program.pipelines.values()
    return found.origin.contract_digest


def use(text: str) -> str:
    analysis, syntax = analysed(text)
    assert syntax == () and analysis.diagnostics == (), analysis.diagnostics
    return analysis.program.bindings["b"].origin.contract_digest


@pytest.fixture(scope="module")
def tick() -> str:
    return pipeline(TICK)


@pytest.fixture(scope="module")
def bound() -> str:
    return use(BOUND)


SAME = {
    "a docstring": ("The vision tower, the language model", "Vision, the language model"),
    "evidence": ("  family", '  evidence "It was fast."\n  family'),
    "the status": ("  family", '  status imported "not verified"\n  family'),
    "the order of values": ("read (images, language, state)", "read (state, images, language)"),
    "the order of what is embedded": (
        "decoder_ffn version 1, vision_ffn version 2,",
        "vision_ffn version 2, decoder_ffn version 1,",
    ),
}

OTHER = {
    "its family": ("family cond_iter_pipeline", "family autoregressive_decode"),
    "the mode of a window": ("noise               : swap", "noise               : staged"),
    "who fills it": ("iterative_state     : swap", "iterative_state     : swap from caller"),
    "what is read back": ("action_chunk        : swap readback", "action_chunk        : swap"),
    "the cadence of a window": ("caller cadence prompt", "caller cadence observation"),
    "the mode of a buffer": ("cond_features       : static", "cond_features       : mutable"),
    "what may be absent": (
        "read (cond_features, state?, noise)",
        "read (cond_features, state, noise)",
    ),
    "what is read": (
        "read (images, language, state)",
        "read (images, state)\n    read_write language",
    ),
    "the cadence of a stage": ("    cadence observation\n", "    cadence request\n"),
    "a capture": ("    capture required\n", "    capture host_dependent\n"),
    "the steps of a loop": ("steps = binding", "steps = 4"),
    "an embedded structure": ("decoder_ffn version 1, ", ""),
    "a version of one": ("vision_ffn version 2, ", ""),
    "a substructure": ("cadence plan", "cadence request"),
    "what a rule is about": (
        "fallback_reported (obs_encode, action_denoise)",
        "fallback_reported (obs_encode)",
    ),
    "its name": ("conform stage_seam_exists ", "conform every_stage_is_there "),
    "its check": (": fixed_loop (denoise)", ": fixed_shapes (denoise)"),
    "a bound": ("cosine >= 0.999", "cosine >= 0.99"),
    "a metric": ("tick_latency, stage_latency", "tick_latency"),
    "a baseline": ("against (host_eager_same_seed)", "against (host_eager_same_tokens)"),
    "the unit of a gate": ("gate net_win per tick", "gate net_win per request"),
}


def spaced(text: str) -> str:
    """Tables of the formatter have other gaps than the pairs here: one blank counts as many."""
    return "\n".join(
        " " * (len(line) - len(line.lstrip())) + " ".join(line.split())
        for line in text.splitlines()
    )


@pytest.mark.parametrize("case", SAME)
def test_what_is_no_meaning(case: str, tick: str) -> None:
    old, new = (spaced(side) for side in SAME[case])
    assert pipeline(swap(spaced(TICK), (old, new))) == tick


@pytest.mark.parametrize("case", OTHER)
def test_every_part_of_the_contract(case: str, tick: str) -> None:
    old, new = (spaced(side) for side in OTHER[case])
    assert pipeline(swap(spaced(TICK), (old, new))) != tick


@pytest.mark.parametrize(
    "pair",
    [
        ("stage input_prepare? {", "stage input_prepare {"),
        ("until stop", "until halt"),
        ("shapes host", "shapes fixed"),
        ("state graph_buckets cadence shape_or_position", "state graph_buckets cadence plan"),
        ("state graph_buckets cadence shape_or_position", ""),
    ],
    ids=[
        "what may be left out",
        "what ends a loop",
        "its shapes",
        "the cadence of a state",
        "a state",
    ],
)
def test_every_part_of_a_decode(pair: tuple[str, str]) -> None:
    text = DECODE
    if "halt" in pair[1]:
        text = text.replace("window stop ", "window halt ").replace(
            "(token_id, stop)", "(token_id, halt)"
        )
    assert pipeline(swap(text, pair)) != pipeline(DECODE)


BOUND_OTHER = {
    "a path": ("stage look at vision", "stage look at tower"),
    "a value": ("window image = input of vision", "window image = output of vision"),
    "a capture": ("capture eager", "capture graph"),
    "its words": ('"at once"', '"in turns"'),
    "a policy": ("policy greedy", "policy sampling"),
    "a protection": (" protect shallow_copy", ""),
    "steps": ("steps = config.steps", "steps = 4"),
    "a cadence": ("cadence observation runs look", "cadence request runs look"),
    "what runs": ("cadence tick runs (look, act)", "cadence tick runs act"),
    "the hot path": ("hot_path (a, b, c)", "hot_path (a, c)"),
    "its order": ("hot_path (a, b, c)", "hot_path (b, a, c)"),
    "a class": ("segment c : control", "segment c : host_stage"),
    "the stage of a segment": ("segment c : control in act", "segment c : control in look"),
    "a seam": ('seam "the loop"', 'seam "the control"'),
    "what is covered": ("covers other", "covers s"),
    "a seat": ("{ seats one }", "{ seats two covers other }"),
    "a host": ('">=5.0" class Model', '">=5.0" class Model\n  host native module "a.b"'),
}


@pytest.mark.parametrize("case", BOUND_OTHER)
def test_every_part_of_a_use(case: str, bound: str) -> None:
    text = swap(BOUND, BOUND_OTHER[case])
    if case == "a seat":
        text = text.replace("embeds s version 1", "embeds (s version 1, other version 1)")
        assert use(text) != use(
            BOUND.replace("embeds s version 1", "embeds (s version 1, other version 1)")
        )
        return
    if case == "the stage of a segment":
        text = text.replace("segment b : state_region in look", "segment b : state_region in act")
    assert use(text) != bound


def test_the_order_of_stages_and_segments_in_a_use_means_nothing(bound: str) -> None:
    lines = BOUND.splitlines()
    first = next(i for i, line in enumerate(lines) if "stage look at vision" in line)
    lines[first], lines[first + 1] = lines[first + 1], lines[first]
    assert use("\n".join(lines)) == bound
