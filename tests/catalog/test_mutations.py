"""Leave out or change any one thing that the catalog declares: something takes notice.

What nobody notices has to say the same as before: its contract digest is the original's,
and it is one of the few ways, listed and proven here, to leave out what is the default.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import pytest
from mutants import Mutant, mutants
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

DEFAULTS = {
    "StructRef.version": "the version may be left out where a structure has one",
    "StatRequest.granularity": "a statistic is per tensor unless it says otherwise",
    "NumericsDecl.items": "a product adds up in f32 unless it says otherwise",
    "AtDecl.params": "a param that a route does not set is what its impl says",
    "Match.arms": "a value of a config that no arm serves is refused",
}
"""Where a restated default can be left out. Each is proven by ``test_default``."""


def chosen(name: str, step: int) -> Iterator[Mutant]:
    """Every ``step``-th mutant of a file, from a start of its own."""
    start = int(hashlib.sha256(name.encode()).hexdigest(), 16) % step
    for place, mutant in enumerate(mutants(WORLD.files[name].tree)):
        if place % step == start:
            yield mutant


def unnoticed(name: str, step: int) -> tuple[int, list[Mutant]]:
    """How many mutants were tried, and those that nothing notices.

    Fails at once on one whose contract moved although nothing that is made from it did,
    and on one that is no default of ``DEFAULTS``.
    """
    needed = WORLD.needed(name)
    before = WORLD.seen(name, WORLD.files[name].tree, needed)
    assert not before.findings
    tried, survivors = 0, []
    for mutant in chosen(name, step):
        tried += 1
        after = WORLD.seen(name, mutant.file, needed)
        if after != before:
            continue
        shown = f"{name}{mutant.where}: {mutant.what} ({mutant.kind})"
        assert after.contracts == before.contracts, f"declared and without consumer: {shown}"
        assert mutant.kind in DEFAULTS, f"changes nothing: {shown}"
        survivors.append(mutant)
    return tried, survivors


@pytest.mark.parametrize("name", WORLD.files)
def test_a_change_is_noticed(name: str) -> None:
    unnoticed(name, STEP)


@pytest.mark.slow
def test_few_changes_go_unnoticed() -> None:
    counts = [unnoticed(name, 1) for name in WORLD.files]
    tried = sum(number for number, _ in counts)
    survived = sum(len(left) for _, left in counts)
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
    point x_in = x
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
        ("AtDecl.params", " with (alpha = 0.5)", ""),
        ("Match.arms", ", else => refuse", ""),
    ],
)
def test_default(kind: str, said: str, left_out: str) -> None:
    text = "frt 1\n" + STRUCTURE + IMPL + SCHEME + BALANCED + BINDING
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
    needed = WORLD.needed(name)
    before = WORLD.seen(name, WORLD.files[name].tree, needed)
    every = (WORLD.seen(name, m.file, needed) for m in mutants(WORLD.files[name].tree))
    seen = next(s for s in every if not s.findings and s != before)
    monkeypatch.setattr(WORLD, "seen", lambda *_: seen)
    with pytest.raises(AssertionError, match="changes nothing"):
        unnoticed(name, 100)
