"""Small pieces of Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a column that is empty in every row is left out."""
    every = [list(row) for row in rows]
    kept = [i for i in range(len(head)) if i == 0 or any(row[i] for row in every)]
    lines = [[line[i].replace("|", "\\|") for i in kept] for line in (list(head), *every)]
    lines.insert(1, ["---"] * len(kept))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def code(text: str) -> str:
    return f"`{text}`"


def names(names: Iterable[str]) -> str:
    """Names as code, with commas."""
    return ", ".join(code(name) for name in names)


def first_sentence(doc: str) -> str:
    """The first sentence of a docstring, on one line."""
    paragraph = " ".join(doc.strip().split("\n\n")[0].split())
    head, stop, _ = paragraph.partition(". ")
    return head + stop.strip()
