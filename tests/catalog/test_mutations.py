"""Leave out or change any one thing that the catalog declares: something takes notice.

What nobody notices has to say the same as before: its contract digest is the original's,
and it is one of the few ways, listed and proven here, to leave out what is the default.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path

import pytest
from everyone import DEFAULTS, everyone, verdicts
from mutants import mutants
from verdicts import World

from frtspec.diag.source import SourceFile
from frtspec.lock import declared
from frtspec.sema import analyse
from frtspec.syntax.parse import parse

WORLD = World.of_catalog()
STEP = 200
"""One mutant in so many is taken by default; ``-m slow`` takes all."""

MOST = 0.02
"""The share of mutants that may go unnoticed."""


def unnoticed(world: World, name: str, places: Iterable[int]) -> None:
    """Fails on a mutant that nothing notices and that is not a default left out."""
    found = verdicts(world, name, places)
    assert not found.wrong


@pytest.mark.parametrize("name", WORLD.files)
def test_a_change_is_noticed(name: str) -> None:
    """Every ``STEP``-th mutant of a file, from a start of its own."""
    start = int(hashlib.sha256(name.encode()).hexdigest(), 16) % STEP
    unnoticed(WORLD, name, range(start, 10**9, STEP))


@pytest.mark.slow
def test_few_changes_go_unnoticed() -> None:
    """All of them, on every core; ``FRTSPEC_MUTATIONS`` names a file that keeps what is done,
    so that a run that was stopped goes on."""
    kept = os.environ.get("FRTSPEC_MUTATIONS")
    done = everyone(Path(kept) if kept else None, len(os.sched_getaffinity(0)))
    assert not [line for block in done for line in block.wrong]
    tried, survived = (sum(len(b.places) for b in done), sum(len(b.survived) for b in done))
    print(f"{tried} mutants, {survived} unnoticed ({survived / tried:.2%})")
    assert survived <= MOST * tried


# ---------------------------------------------------------------- the defaults

STRUCTURE = """
structure s version 1 {
  dim M, D, F
  in  x [rows M, D] : host
  out y [rows M, F] : host
  slot w [D, F]
  reference {
    point x_in = softmax(x, over D)
    yield y = x_in @ w
  }
}
"""
IMPL = """
impl fp8 for s version 1 {
  pack weight = quantize(w.T, fp8_e4m3, per tensor)
  scale in_s = static(x_in)
  numerics { acc f32, out bf16 }
  rung emulate
}
"""
SCHEME = """
scheme quick {
  at s version 1 { x_in: amax per tensor } use fp8
  otherwise keep "nothing else has a form here"
}
"""

BALANCED = """
impl even for s version 1 {
  param alpha = 0.5
  pack  weight = quantize(balance(w.T, in_b), nvfp4, per block 16)
  scale in_b   = balance(x_in, alpha, 0.25, 4)
  scale in_s   = dynamic(x_in, per block 16)
  numerics { acc f32, out bf16 }
  rung emulate
}
scheme evened {
  at s version 1 { x_in: amax per channel } use even with (alpha = 0.5)
  otherwise keep "nothing else has a form here"
}
"""
BINDING = """
binding b {
  host transformers ">=5.0" class Model
  seat proj : s version 1 at proj when match config.act { "none" => true, else => refuse } {
    slot w = weight : out_in
    point x_in = input
    boundary at proj { x = input, y = output }
  }
}
"""


@pytest.mark.parametrize(
    ("kind", "said", "left_out"),
    [
        ("StructRef.version", "at s version 1", "at s"),
        ("StatRequest.granularity", "amax per tensor", "amax"),
        ("NumericsDecl.items", "acc f32, ", ""),
        ("Call.args", "softmax(x, over D)", "softmax(x)"),
        ("AtDecl.params", " with (alpha = 0.5)", ""),
        ("Match.arms", ", else => refuse", ""),
        ("StatusDecl", "  status draft\n", ""),
    ],
)
def test_default(kind: str, said: str, left_out: str) -> None:
    text = "frt 1\n" + STRUCTURE + IMPL + SCHEME + BALANCED + BINDING
    text = re.sub(r"(?m)^((?:structure|impl|scheme|binding) .*\n)", r"\1  status draft\n", text)
    assert kind in DEFAULTS and said in text
    assert contracts(text.replace(said, left_out)) == contracts(text)


def test_every_default_is_proven() -> None:
    proven = {row[0] for mark in test_default.pytestmark for row in mark.args[1]}
    assert proven == set(DEFAULTS)


def contracts(text: str) -> list[str]:
    source = SourceFile.from_text("one.frt", text)
    analysis = analyse([(source, parse(source).file)])
    assert not analysis.diagnostics, analysis.diagnostics
    return [item.row.contract_digest for item in declared(analysis.program)]


# ---------------------------------------------------------------- the mutants themselves


def test_mutants_are_many_and_different() -> None:
    name = "structures/decoder_ffn/v1.frt"
    made = list(mutants(WORLD.files[name].tree))
    assert len(made) > 200
    assert len({(m.where, m.what) for m in made}) == len(made)
    assert all(m.file != WORLD.files[name].tree for m in made)


def test_a_field_without_a_consumer_would_be_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a canonical form that is blind to gates and generators that are too, a changed
    gate goes unnoticed: the test must say so."""
    name = "structures/decoder_ffn/v1.frt"
    others = WORLD.needed(name)
    before = WORLD.seen(name, WORLD.files[name].tree, others)
    every = ((m, WORLD.seen(name, m.file, others)) for m in mutants(WORLD.files[name].tree))
    changed = next(m for m, s in every if not s.findings and s != before)
    look = WORLD.look(name, changed.file, others)
    monkeypatch.setattr(WORLD, "noticed", lambda *_: look)
    with pytest.raises(AssertionError, match="declared and without consumer"):
        unnoticed(WORLD, name, [0])
    monkeypatch.setattr(
        WORLD, "noticed", lambda *_: WORLD.look(name, WORLD.files[name].tree, others)
    )
    with pytest.raises(AssertionError, match="changes nothing"):
        unnoticed(WORLD, name, [0])


@pytest.mark.parametrize("name", ["bindings/flash_rt/flashrt_qwen3_8b.frt", "schemes/none.frt"])
def test_what_is_kept_from_mutant_to_mutant_changes_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = WORLD.needed(name)
    some = list(mutants(WORLD.files[name].tree))[::40]
    seen = [WORLD.seen(name, mutant.file, others) for mutant in some]
    monkeypatch.setattr("verdicts.unchanged", lambda world, own: nullcontext())
    assert [WORLD.seen(name, mutant.file, others) for mutant in some] == seen
