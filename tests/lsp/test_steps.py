"""Names in a rung's own steps: lets and what is prepared are seen by their rung alone."""

from __future__ import annotations

from frtspec.diag.source import SourceFile
from frtspec.lsp.occurrences import Occurrence, occurrences
from frtspec.syntax.parse import parse

SPEC = """frt 1

impl fp8 for s version 1 {
  pack weight = quantize(w.T, fp8_e4m3, per tensor)
  rung hub "org/a" version 1 {
    prepare room = zeros((F), bf16)
    call {
      let (h, _) = entry(x, weight, room, causal = true)
      yield y = h
    }
  }
  rung hub "org/b" version 1 { call { let h = entry(x, weight)  yield y = h } }
}
"""


def named(name: str) -> list[Occurrence]:
    parsed = parse(SourceFile.from_text("a.frt", SPEC))
    return [one for one in occurrences(parsed.file) if one.name == name]


def test_a_let_is_known_in_its_rung_only() -> None:
    first, read, second, again = named("h")
    assert first.defines and second.defines and not read.defines
    assert first.symbol == read.symbol != second.symbol == again.symbol


def test_what_is_prepared_is_a_name_of_its_rung() -> None:
    made, read = named("room")
    assert made.defines and made.symbol == read.symbol and made.symbol[0] == "inner"


def test_entries_and_literals_name_nothing() -> None:
    assert not named("entry") and not named("true") and not named("_")
    assert [one.kind for one in named("y")] == ["output", "output"]
