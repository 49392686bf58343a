"""Words of the language are free as names, except for seven, which offer a way out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from frtspec.syntax import ast
from frtspec.syntax.engine import Engine
from frtspec.syntax.grammar import RESERVED
from frtspec.syntax.parse import parse
from frtspec.syntax.tables import tables
from tests.syntax.support import FRAMES, framed

POSITIONS = {
    "structure": """
        status % | dim % | dim M, %[i] | dim N[%] | index % in 0..N | index i in 0..% | param % = 1
        param p = % | in % [M] : host | in %? [M] : host | in x [%, M] : host | in x [rows %] : host
        in x [M |%] : host | in x [M] : f32 = % | in x [M] : f32 updates % | in x [M] : f32 scale %
        out y [M] : f32 aliases % | in x [M] : f32 when % is a | in x [M] : f32 when a is %
        in x [M] : f32 when a is (b, %) | in x [M] : f32 when present % | slot % [M]
        slot w[%] [M] | slot % : structure t version 1 | slot w : structure % version 1
        part % : host fn (a) -> b | part p : host fn (%, %) -> b | part p : host fn () -> %
        part p : host fn () -> (a, %) | variant % { a } | variant v { %, a } | variant v { a } default %
        variant v { a } retired (%) | combinations { all except (% is a) } | point % content
        point p % | seam % { from a to b } | seam s { from % to b } | seam s { from (a, %) to % }
        seam s { from a to b gate % >= 1 } | gate % { a } | gate g on % { a } | gate g per % { a }
        gate g { % } | gate g { a including % } | gate g { a, against (%, b) } | qualify for % { M > 1 }
        qualify { % > 1, % * 2 == M } | require { M % 2 == % } | discover % { }
    """,
    "discover": """
        role % : linear | role r[%] : linear (w) | role r : % (w) at seat | role r : linear (%)
        role r : linear (w, %) | role r : linear (chunks(a, %)) | called % (a) | called r (%, b)
        role r : linear tells % | role r : linear tells v { % => b } | role r : linear tells v { a => % }
        role r : linear gives % around seat | point % = input of r | point p = output of %
        variant % = a | variant v = % | boundary at seat { % = input } | boundary around seat { x = output of % }
    """,
    "reference": """
        let % = a | let a[%] = b | let a = % | let a = % + b | let a = b - % | let a = -%
        let a = f(%) | let a = f(b, %) | let a = f(% = b) | let a = f(over %) | let a = f(per %)
        let a = f(each % => b) | let a = f(each i => %) | let a = %.T | let a = w.% | let a = w[%]
        let a = w[:, %] | let a = w[%:] | let a = (%) | let a = (%, b) | let a = match % { b => c }
        let a = match b { c => % } | let a = b when % is c | let a = b when not (% is c)
        let a = b when present % otherwise % | point % = a | point p % = a | yield % = a
        yield y[%] = a | each % { } | scan % in S { } | scan t in % { } | scan t in S over %, k { }
        scan t in S carry % = a { } | scan t in S carry s = % { } | let a = a and % is b or % is c
        let a = % ?? b | let a = % @ % | let a = % ** 2
    """,
    "scan": "next % = a | emit % = a",
    "impl": """
        pack % = a | pack p[%] = a | scale % = f(a) | numerics { % f32 } | numerics { acc % }
        numerics { store % f32 } | admits % { a } | admits p { % } | only % (a) | only v (a, %) | only v %
        form % (a = 1) | form f (% = 1) | form f (a = %) | rung % | band % in 0..8 { } | band M in %.. { }
        require { % > 1 }
    """,
    "rung": """
        call % (a) | call e (%, b) | call e (% = a) | call match % { a => b } | call match v { a => % }
        lower % to a | lower a to % | envelope { % <= 1 }
    """,
    "scheme": """
        at % { p: amax } use f | at s.% { p: amax } use f | at s { %: amax } use f | at s { p: % } use f
        at s { p: amax per % } use f | at s use % | at s use f with (% = 1) | at % keep "r"
        at s keep when % < 2 use f
    """,
    "binding": """
        host % | host h class % | host h class (A, %) | dims { % = a } | dims { D = % } | dims { %[0] = a }
        dims { D = config.% ?? % } | each % in 0..L { } | each i in 0..% { } | each i in 0..L where % == 1 { }
        seat % : t version 1 at m { } | seat s : % version 1 at m { } | seat s : t.% version 1 at m { }
        seat s : t version 1 at % { } | seat s : t version 1 at m.%.{%}.x { } | chain %.a -> b.c wire w
        chain a.% -> b.c wire w | chain a.b -> %.c wire w | chain a.b -> c.% wire w | chain a.b -> c.d wire %
        chain a.b -> c.d wire w require (%) | group % over (a) writer b | group g over (%) writer b
        group g over (a) writer % | group g over (a) writer b require % | pipeline % version 1 { }
        export % { a = "x" } | export e { % = "x" } | export e { a[%] = "x" }
    """,
    "seat": """
        variant % = a | variant v = % | param % = a | param p = config.% | dims { % = a } | slot % = a
        slot w = % | slot w = a.% | slot w = a : % | slot w = %(a) | slot w = chunks(%, %) | point % = input
        point p = input of % | point p = arg % of a | boundary at % { x = input } | boundary at m { % = input }
        boundary at m { x = output of % } | boundary at m { slot % = a } | expect % a | expect f %
        expect f (%, a) | expect f a of % | expect f a of (b, %) | siblings prove (%) { w = a }
        siblings { % = a } | siblings { w[0] = % } | form % | form f (%)
    """,
    "pipeline": """
        family % | window % : swap | window w : % | window w : swap cadence % | buffer % : static
        buffer b : % cadence token | state % | state s writers % | state s readers (a, %) | stage % { }
        stage %? { } | loop % { } | embeds % version 1 | embeds (a version 1, % version 2)
        substructure % cadence plan | substructure s cadence % | conform % : every_stage_runs | conform c : %
        conform c : fixed_loop (%) | gate % { a } | gate g on % { a } | gate g on (a, %) { b }
        gate g per % { a } | gate g { % }
    """,
    "stage": "cadence % | read % | read (a, %?) | write %? | read_write % | capture %",
    "loop": "steps = % | until % | shapes % | runs % | runs (a, %)",
    "use": """
        stage % { } | stage s at % { } | stage s at m.% { } | loop % steps = 1 | loop l steps = config.%
        cadence % runs a | cadence c runs % | coverage % { }
    """,
    "stage_use": """
        capture % | policy % | protect % | window % = "a" | buffer % = input of a | state s = arg % of a
    """,
    "coverage": """
        hot_path % | hot_path (a, %) | segment % : control in s { } | segment c : % in s { }
        segment c : control in % { } | segment c : structure in s { covers % }
        segment c : structure in s { seats (%) }
    """,
}
"""Where a name can stand, by the frame of the snippet; ``%`` is the name."""

PLACES = [
    (frame, snippet.strip())
    for frame, text in POSITIONS.items()
    for line in text.splitlines()
    for snippet in line.split(" | ")
    if snippet.strip()
]
WORDS = sorted(tables().words - set(RESERVED))


def _put(snippet: str, word: str) -> str:
    """``%`` is the name, but ``M % 2`` is an operator."""
    return snippet.replace("M % 2", "M ~ 2").replace("%", word).replace("~", "%")


def test_the_reserved_words_are_words() -> None:
    assert set(RESERVED) < tables().words
    assert len(RESERVED) == 7
    assert len(WORDS) > 90


@pytest.mark.parametrize("frame, snippet", PLACES)
def test_a_name_can_stand_there(frame: str, snippet: str) -> None:
    result = parse(framed(frame, _put(snippet, "plain")))
    assert result.diagnostics == ()
    assert "plain" in set(_names(result.file))


@pytest.mark.parametrize("frame, snippet", PLACES)
def test_every_other_word_is_free(frame: str, snippet: str) -> None:
    """The word is read as a name (or as a part of a path), and the text reads on."""
    failed = []
    for word in WORDS:
        text = framed(frame, _put(snippet, word)).text
        start = text.index(
            word, len(FRAMES[frame][0]) + snippet.replace("M % 2", "M ~ 2").index("%")
        )
        engine = Engine(tables(), text, keep_all=True)
        done = engine.read() is not None
        token = max((s for s in engine.recent if s.start <= start), key=lambda s: s.start)
        if not done or token.terminal not in ("NAME", "PATH"):
            failed.append(word)
    assert failed == []


def _ours_to_name(frame: str, snippet: str) -> bool:
    """Paths on the host and fields of its config are named by the host."""
    paths = ("of %", "of (b, %)", "slot w = %", "] = %", "chunks(%", "at % {", "at m.%")
    in_path = frame in ("seat", "binding", "use") and any(part in snippet for part in paths)
    return ".%" not in snippet and not in_path


@pytest.mark.parametrize("frame, snippet", [p for p in PLACES if _ours_to_name(*p)])
@pytest.mark.parametrize("word", RESERVED)
def test_a_reserved_word_offers_a_way_out(frame: str, snippet: str, word: str) -> None:
    result = parse(framed(frame, _put(snippet, word)))
    said = [(d.code, d.help) for d in result.diagnostics if f"`{word}`" in d.message]
    assert ("FRT0106", f"call it `{word}_` or another name") in said, result.diagnostics


def _names(node: object) -> Iterator[str]:
    if isinstance(node, ast.Name):
        yield node.id.split("[")[0]
    elif isinstance(node, ast.HostPath):
        yield from (part.strip(".") for part in node.text.replace("{", ".").split("."))
    elif isinstance(node, ast.Granularity):
        yield node.kind
    if isinstance(node, tuple):
        for item in node:
            yield from _names(item)
    elif dataclasses.is_dataclass(node):
        for field in dataclasses.fields(node):
            yield from _names(getattr(node, field.name))
