"""No text brings the checks down, or keeps them long; what is wrong is not generated from."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from frtspec.codegen.generate import problems
from frtspec.diag.diagnostic import has_errors
from frtspec.diag.source import SourceFile
from frtspec.sema import analyse
from frtspec.syntax.parse import parse

ROOT = Path(__file__).parents[2]
TEXTS = [
    p.read_text("utf-8")
    for folder in ("specs", "tests/specs/hard")
    for p in sorted((ROOT / folder).rglob("*.frt"))
]
TOKEN = re.compile(r'"""[\s\S]*?"""|"[^"\n]*"|[A-Za-z_][A-Za-z0-9_]*|\d+(?:\.\d+)?|\s+|.')
WORDS = sorted({t for text in TEXTS for t in TOKEN.findall(text) if not t.isspace()})
OTHERS = [
    (s, parse(s).file) for s in (SourceFile.from_text(f"{n}.frt", t) for n, t in enumerate(TEXTS))
]


@st.composite
def mutated(draw: st.DrawFn) -> tuple[int, str]:
    """A file of the catalog with a few tokens dropped, replaced, added or swapped."""
    which = draw(st.integers(0, len(TEXTS) - 1))
    tokens = TOKEN.findall(TEXTS[which])
    for _ in range(draw(st.integers(1, 5))):
        at = draw(st.integers(0, len(tokens) - 1))
        what = draw(st.sampled_from(["drop", "replace", "add", "swap"]))
        word = draw(st.sampled_from(WORDS))
        if what == "drop":
            tokens[at] = ""
        elif what == "replace":
            tokens[at] = word
        elif what == "add":
            tokens.insert(at, f" {word} ")
        else:
            other = draw(st.integers(0, len(tokens) - 1))
            tokens[at], tokens[other] = tokens[other], tokens[at]
    return which, "".join(tokens)


def survives(which: int, text: str) -> None:
    """Checks the catalog with one of its files so: nothing falls, and no finding is empty."""
    source = SourceFile.from_text(f"{which}.frt", text)
    files = [(source, parse(source).file) if n == which else f for n, f in enumerate(OTHERS)]
    start = time.process_time()
    analysis = analyse(files)
    found = analysis.diagnostics
    problems(analysis.program)  # as `frtspec check` does, whatever was found
    assert time.process_time() - start < 8
    for diagnostic in found:
        assert diagnostic.message and 0 <= diagnostic.span.start <= diagnostic.span.end


@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(mutated())
def test_mutated_files_are_checked(case: tuple[int, str]) -> None:
    survives(*case)


@pytest.mark.slow
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(mutated())
def test_more_mutated_files_are_checked(case: tuple[int, str]) -> None:
    survives(*case)


def test_many_variants_end_in_a_finding() -> None:
    axes = "\n".join(f"variant v{k} {{ a, b, c, d }}" for k in range(60))
    uses = "\n".join(f"let h = match v{k} {{ a => h, else => -h }}" for k in range(60))
    text = f"""frt 1
structure s version 1 {{
  dim M, D
  in x [rows M, D] : host
  out y [rows M, D] : host
  {axes}
  reference {{ let h = x
  {uses}
  yield y = h }}
}}
"""
    source = SourceFile.from_text("s.frt", text)
    found = analyse([(source, parse(source).file)]).diagnostics
    assert [d.code for d in found] == ["FRT0315"]


def test_sizes_do_not_explode() -> None:
    power = "((A + B + C + D + E + F + G) ** 16) ** 16"
    text = f"""frt 1
structure s version 1 {{
  dim A, B, C, D, E, F, G
  in x [A] : host
  out y [A] : host
  require {{ {power} >= 1 }}
  reference {{ yield y = x }}
}}
"""
    source = SourceFile.from_text("s.frt", text)
    start = time.process_time()
    found = analyse([(source, parse(source).file)]).diagnostics
    assert [d.code for d in found] == ["FRT0317"]
    assert time.process_time() - start < 2


# ---------------------------------------------------------------- structures in structures


def made(name: str, *inner: str, seam: str = "") -> str:
    """A structure that calls each inner one in turn."""
    slots = "".join(f"slot s{k} : structure {one} version 1\n" for k, one in enumerate(inner))
    calls = "".join(f"let h = s{k}(h)\n" for k in range(len(inner)))
    return f"""structure {name} version 1 {{
  dim M, D
  in x [rows M, D] : host
  out y [rows M, D] : host
  {slots}
  reference {{ point p = x * 2
  let h = p
  {calls}
  yield y = h }}
  {seam}
}}
"""


@pytest.mark.parametrize(
    "text",
    [
        made("a", "a"),
        made("a", "b") + made("b", "c") + made("c", "a"),
        made("a", "b") + made("b", "a", seam="seam k { from p to h  gate cosine >= 0.9 }"),
        "structure s version 1 { reference { } }\npipeline p version 1 { }\nseam k { }\n",
        "impl f for s version 1 { }\nscheme c { }\nbands M in 1.. { }\n" + made("s"),
    ],
    ids=["itself", "ring", "seam", "empty", "torn"],
)
def test_what_is_wrong_is_not_generated_from(text: str) -> None:
    """Nor is what is made of it: what a reader is spared to hear is no right declaration."""
    source = SourceFile.from_text("s.frt", f"frt 1\n{text}")
    result = parse(source)
    analysis = analyse([(source, result.file)])
    assert has_errors([*result.diagnostics, *analysis.diagnostics])
    assert problems(analysis.program) == ()


@pytest.mark.parametrize(("levels", "times"), [(1200, 1), (30, 2)], ids=["deep", "doubled"])
def test_structures_in_structures_end_in_a_finding(levels: int, times: int) -> None:
    chain = [made(f"a{k}", *[f"a{k + 1}"] * times) for k in range(levels)]
    source = SourceFile.from_text("s.frt", "frt 1\n" + "".join(chain) + made(f"a{levels}"))
    start = time.process_time()
    found = analyse([(source, parse(source).file)]).diagnostics
    assert {d.code for d in found} == {"FRT0317"}
    assert time.process_time() - start < 5
