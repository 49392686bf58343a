"""Mistakes planted into the catalog: each is reported at its line, and nothing else is.

Up to eight at once, of many kinds, so that one finding hides no other and starts no
cascade.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from frtspec.diag.source import SourceFile
from frtspec.sema import analyse
from frtspec.syntax import ast
from frtspec.syntax.parse import parse
from tests.catalog.verdicts import World, unchanged

ROOT = Path(__file__).parents[2] / "specs"
TEXTS = {p.relative_to(ROOT).as_posix(): p.read_text("utf-8") for p in sorted(ROOT.rglob("*.frt"))}

Make = Callable[[re.Match[str]], str]


@dataclass(frozen=True)
class Kind:
    """A mistake: where it can be made on a line, and how. ``at_head``: the finding is at the
    declaration's or seat's name, because what is missing has no place."""

    name: str
    pattern: str
    make: Make
    at_head: bool = False


def _drop_letter(match: re.Match[str]) -> str:
    word = match[1]
    return match[0].replace(word, word[:-2] + word[-1], 1)


KINDS = (
    Kind("misspelt value", r"(?<=[=(] )(x_after_norm|act_after_mul)(?= @| \*)", _drop_letter),
    Kind("misspelt slot in a reference", r"f32\((w_norm|residual)\)", _drop_letter),
    Kind("misspelt op", r"= (rms_norm|layer_norm|gelu_tanh)\(", _drop_letter),
    Kind(
        "misspelt dim in a shape", r"^  slot \w+ +\[\w+, (\w)\]", lambda m: m[0].replace(m[1], "Q")
    ),
    Kind("misspelt dtype", r": (host)\b", _drop_letter),
    Kind("misspelt metric", r"(cosine) >= 0", _drop_letter),
    Kind("misspelt baseline", r"(torch_compile)", _drop_letter),
    Kind("bound the wrong way", r"cosine >= 0\.999", lambda m: "cosine <= 0.999"),
    Kind(
        "unknown value of a variant", r"when \w+ is (before_weight|residual_add|add)", _drop_letter
    ),
    Kind("unknown variant", r"when (norm_rounding|epilogue) is", _drop_letter),
    Kind("no otherwise", r" otherwise o$", lambda m: ""),
    Kind("unused dim", r"^  dim M\b", lambda m: m[0] + ", Unused"),
    Kind("unused param", r"^  param eps = 1e-6", lambda m: m[0] + "\n  param unused = 1"),
    Kind("product without a cast", r"f32\(x_in\) @", lambda m: "x_in @"),
    Kind("misspelt point of a scale", r"static\((\w+)\)", _drop_letter),
    Kind("misspelt slot of a pack", r"\((w_gate|w_down|w)\.T", lambda m: m[0].replace(m[1], "w_q")),
    Kind("unknown format", r"(fp8_e4m3), per tensor", lambda m: m[0].replace(m[1], "fp8_e4m4")),
    Kind("unknown granularity", r"per tensor\)", lambda m: "per tonsor)"),
    Kind("unknown dim in an envelope", r"envelope \{ (K|D) %", lambda m: m[0].replace(m[1], "Z")),
    Kind("misspelt scale of a call", r"(gate_up|weight)\.scale", _drop_letter),
    Kind("unknown library op", r"to (scaled_mm)", _drop_letter),
    Kind("misspelt point of a statistic", r"\{ (x_after_norm|x_in): ", _drop_letter),
    Kind("unknown statistic", r": (amax) per tensor \}", _drop_letter),
    Kind("unknown impl", r"use (fp8_static)$", _drop_letter),
    Kind("unknown structure", r"at (linear_proj) version", _drop_letter),
    Kind(
        "unknown version",
        r"(linear_proj|norm_fused|qkv_pack) version 1 at",
        lambda m: f"{m[1]} version 7 at",
    ),
    Kind(
        "unknown seam", r"decoder_ffn\.(mlp) version 1 at", lambda m: m[0].replace(".mlp", ".mpl")
    ),
    Kind("no layout", r"(weight) : out_in$", lambda m: m[1]),
    Kind("unknown layout", r": (out_in)$", _drop_letter),
    Kind("misspelt slot of a seat", r"^      slot (w_gate|w_up) +=", _drop_letter),
    Kind("misspelt point of a seat", r"^      point (act_after_mul) =", _drop_letter),
    Kind("misspelt variant of a seat", r"^      variant (norm_rounding) =", _drop_letter),
    Kind("unknown value of a seat", r"variant norm_rounding = (\w+)", _drop_letter),
    Kind("unknown host fact", r"expect (returns) tensor", _drop_letter),
    Kind("unknown value of a fact", r"expect returns (tensor)", _drop_letter),
    Kind("no range of versions", r'"(>=5[^"]*)"', lambda m: '"5 and up"'),
    Kind("misspelt dim of a binding", r"0\.\.(L) \{", lambda m: m[0].replace("L", "Layers")),
    Kind("unknown dim of a seat", r"^ {4,}dims \{ (D|K) =", lambda m: m[0].replace(m[1], "Zz")),
    Kind("unknown source of a dim", r"= (config)\.num_hidden_layers", _drop_letter),
    Kind("misspelt output of a boundary", r"(y) = output", lambda m: "yy = output"),
)
FOLLOWS = {
    "misspelt output of a boundary": {"FRT0607"},
    "misspelt variant of a seat": {"FRT0603"},
    "misspelt slot of a seat": {"FRT0604"},
    "misspelt point of a seat": {"FRT0605"},
}
"""A misspelt line also leaves its own name unset, which is said at the seat's name."""


def plant(text: str, rng: random.Random, count: int) -> tuple[str, dict[int, Kind]]:
    """The text with up to ``count`` mistakes on lines of their own, and where they are."""
    lines = text.splitlines()
    planted: dict[int, Kind] = {}
    for kind in rng.sample(KINDS, len(KINDS)):
        places = [n for n, line in enumerate(lines) if re.search(kind.pattern, line)]
        places = [n for n in places if n not in planted and "\n" not in lines[n]]
        if places and len(planted) < count:
            at = rng.choice(places)
            lines[at] = re.sub(kind.pattern, kind.make, lines[at], count=1)
            planted[at] = kind
    out, moved, text_lines = {}, 0, []
    for n, line in enumerate(lines):
        if n in planted:
            out[n + 1 + moved + line.count("\n")] = planted[n]
        moved += line.count("\n")
        text_lines.append(line)
    return "\n".join(text_lines) + "\n", out


def parsed(name: str, text: str) -> tuple[SourceFile, ast.File]:
    source = SourceFile.from_text(name, text)
    return source, parse(source).file


WORLD = World.of_catalog()

MOST_FILES = 6
"""Of the files that a mistake fits, so many are tried, spread over the catalog."""


NOTE, UNUSED = "note", "declared here and never used"


def findings(name: str, text: str) -> list[tuple[int, str, str]]:
    here = parsed(name, text)
    rest = [WORLD.files[other] for other in WORLD.needed(name)]
    with unchanged(WORLD, WORLD.files[name]):
        analysis = analyse([here, *((file.source, file.tree) for file in rest)])
    about = [d for d in analysis.diagnostics if d.span.path == name]
    out = [(here[0].position(d.span.start)[0], d.code, d.message) for d in about]
    # An unknown name and the only unused one of its kind are one finding that shows both.
    for span, said in [note for d in about for note in d.notes]:
        if span is not None and said == UNUSED:
            out.append((here[0].position(span.start)[0], NOTE, said))
    return out


def compare(
    planted: dict[int, Kind], found: Sequence[tuple[int, str, str]]
) -> tuple[list[str], list[str]]:
    """What was planted and not found, and what was found and not planted."""
    lines = {line for line, _, _ in found}
    missed = [f"line {n}: {kind.name}" for n, kind in planted.items() if n not in lines]
    follows = {code for kind in planted.values() for code in FOLLOWS.get(kind.name, ())}
    false = [f for f in found if f[0] not in planted and f[1] not in (*follows, NOTE)]
    return missed, [f"line {line}: {code} {message}" for line, code, message in false]


def possible(text: str) -> list[Kind]:
    return [
        kind for kind in KINDS if any(re.search(kind.pattern, line) for line in text.splitlines())
    ]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_each_kind_alone(kind: Kind) -> None:
    tried = 0
    fits = [n for n, text in TEXTS.items() if re.search(kind.pattern, text, re.MULTILINE)]
    for name in fits[:: max(1, len(fits) // MOST_FILES)]:
        text = TEXTS[name]
        for n, line in enumerate(text.splitlines()):
            if re.search(kind.pattern, line):
                lines = text.splitlines()
                lines[n] = re.sub(kind.pattern, kind.make, line, count=1)
                at = n + 1 + lines[n].count("\n")
                found = findings(name, "\n".join(lines) + "\n")
                assert compare({at: kind}, found) == ([], []), (name, found)
                tried += 1
                break
    assert tried


@pytest.mark.parametrize("seeds", [30, pytest.param(60, marks=pytest.mark.slow)])
def test_several_at_once(seeds: int) -> None:
    """A mistake may hide behind another: an unknown shape leaves no product to check, and
    uses no dim."""
    total = lost = 0
    for seed in range(seeds):
        rng = random.Random(seed)
        name = rng.choice([n for n, text in TEXTS.items() if len(possible(text)) > 2])
        text, planted = plant(TEXTS[name], rng, 8)
        found = findings(name, text)
        missed, false = compare(planted, found)
        assert false == [], (name, planted, found)
        total += len(planted)
        lost += len(missed)
    assert total > 200 * seeds / 60
    assert lost <= 0.03 * total, f"{lost} of {total} missed"
