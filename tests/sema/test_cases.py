"""Cases as text: a spec whose lines say in a comment what is wrong with them.

A case starts with ``=== title``, or ``=== title | frame`` where the text stands at HERE
in ``frames/<frame>.frt``. ``# FRT0303`` at the end of a line says that this line has that
finding; every finding of the case has to be said, and nothing else found. ``# FRT0303: words``
asks for words in the message or the help as well.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

from frtspec.diag.source import SourceFile
from tests.sema.helpers import check

HERE = Path(__file__).parent
_SAYS = re.compile(r"# ((?:FRT\d{4}(?:: [^,]+)?(?:, )?)+)$")
_ONE = re.compile(r"(FRT\d{4})(?:: ([^,]+))?")


@dataclass(frozen=True)
class Case:
    title: str
    text: str


def cases() -> list[Case]:
    out = []
    for path in sorted((HERE / "cases").glob("*.txt")):
        for block in re.split(r"^=== ", path.read_text("utf-8"), flags=re.MULTILINE)[1:]:
            head, _, body = block.partition("\n")
            title, _, frame = (part.strip() for part in head.partition("|"))
            text = body.strip("\n") + "\n"
            if frame:
                around = (HERE / "frames" / f"{frame}.frt").read_text("utf-8")
                text = around.replace("HERE\n", text)
            out.append(Case(f"{path.stem}: {title}", text))
    return out


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.title)
def test_case(case: Case) -> None:
    wanted = []
    for number, line in enumerate(case.text.splitlines(), start=1):
        found = _SAYS.search(line)
        if found:
            wanted += [(number, code, words) for code, words in _ONE.findall(found[1])]
    source = SourceFile.from_text("file0.frt", case.text)
    got = [(source.position(d.span.start)[0], d) for d in check(case.text)]
    shown = "\n".join(f"line {line}: {d.code} {d.message} | {d.help}" for line, d in got)
    assert [(line, d.code) for line, d in got] == [(line, code) for line, code, _ in wanted], shown
    for (_, d), (_, _, words) in zip(got, wanted, strict=True):
        assert words.strip() in f"{d.message} {d.help} {d.notes}", shown
