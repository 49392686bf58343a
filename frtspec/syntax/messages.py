"""Wording of syntax errors: never a parser's word, always what to do.

The tables are data (``grammar/errors.toml``). The places of the common mistakes are found
by parsing their examples once, at the first error of a process: parser states have no
names that would survive a change of the grammar.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import Span
from frtspec.syntax.braces import Suggestion
from frtspec.syntax.engine import Cell, Engine
from frtspec.syntax.grammar import RESERVED
from frtspec.syntax.nodes import Token
from frtspec.syntax.panic import Dropped
from frtspec.syntax.recover import Repair, end_before
from frtspec.syntax.scanner import Lexeme, indent_at, lexeme_at, lexemes, line_indent
from frtspec.syntax.tables import END, ERROR, Tables, tables
from frtspec.syntax.wording import wording

ANYTHING = ""
"""In the key of a mistake: whatever stands there."""

SHOWN = 5
"""More things than this are not listed; the block's members are named instead."""


@dataclass(frozen=True)
class Place:
    """Where an error is: what the parser stood on, and what it met."""

    path: str
    text: str
    cell: Cell
    found: Lexeme
    accepted: tuple[str, ...]


def lexeme_here(engine: Engine) -> Lexeme:
    """What stands at the engine's position."""
    size = len(engine.text)
    return lexeme_at(engine.text, engine.at) if engine.at < size else Lexeme("end", "", size, size)


# ---------------------------------------------------------------- common mistakes


def _key(state: int, found: Lexeme) -> tuple[int, str]:
    return state, found.text if found.kind in ("mark", "word") else f"a {found.kind}"


@cache
def mistakes() -> dict[tuple[int, str], tuple[str, str]]:
    """(parser state, what was met) -> (message, help)."""
    known = {}
    for row in wording()["mistake"]:
        engine = Engine(tables(), row["example"])
        assert engine.read() is None, row["example"]
        key = _key(engine.cell[0], lexeme_here(engine))
        if row.get("any"):
            key = key[0], ANYTHING if row["any"] == "thing" else f"a {row['any']}"
        known[key] = (row["message"], row["help"])
    return known


def known_mistake(place: Place, *, exactly: bool = False) -> Diagnostic | None:
    """The finding for a common mistake, if this is one; with ``exactly`` only where what
    stands at the error tells."""
    state = place.cell[0]
    span = _span(place.path, place.found)
    special = mistakes().get(_key(state, place.found))
    if special is None:
        special = mistakes().get((state, f"a {place.found.kind}"))
    if special is None and place.found.text in wording()["habits"]:
        habit = wording()["habits"][place.found.text]
        special = habit["message"], habit["help"]
    if special is None and not exactly:
        special = mistakes().get((state, ANYTHING))
        span = _where(place)
    return None if special is None else Diagnostic("FRT0101", special[0], span, help=special[1])


# ---------------------------------------------------------------- words


def shown(found: Lexeme) -> str:
    """A lexeme as a message names it."""
    if found.kind == "end":
        return "the end of the file"
    if found.kind in ("docstring", "open_docstring"):
        return "a docstring"
    text = found.text if len(found.text) <= 40 else f"{found.text[:39]}…"
    if found.kind == "other" and not text.isprintable():
        return f"the character U+{ord(text[0]):04X}"
    return f"`{text}`"


def expected(place: Place, table: Tables) -> str | None:
    """``expected a name or `[` ``, or None when that would be a long list."""
    words = wording()["words"]
    wanted: dict[str, None] = {}
    left = [t for t in place.accepted if t != ERROR]
    longer = wording()["continuations"]
    left = [t for t in left if t not in longer] or left
    for terminal in left:
        name = "END" if terminal == END else terminal
        wanted[words.get(name) or f"`{table.marks[terminal]}`"] = None
    if not 0 < len(wanted) <= SHOWN:
        return None
    *most, last = wanted
    return f"expected {', '.join(most)} or {last}" if most else f"expected {last}"


def opened_by(cell: Cell) -> str | None:
    """The keyword of the innermost open block."""
    below: Any = cell
    depth = 0
    while below is not None:
        value = below[1]
        kind = value.kind if isinstance(value, Token) else None
        if depth > 0 and kind is not None and value.text in wording()["blocks"]:
            return value.text  # type: ignore[no-any-return]
        depth += (kind == "LBRACE") - (kind == "RBRACE")
        below = below[2]
    return None


# ---------------------------------------------------------------- diagnostics


def _span(path: str, found: Lexeme) -> Span:
    return Span(path, found.start, max(found.end, found.start + 1))


def _where(place: Place) -> Span:
    """The lexeme in question; the end of the line before where it opens a line, because
    then something is missing there."""
    if place.found.kind == "end" or indent_at(place.text, place.found.start) is not None:
        end = end_before(place.text, place.found.start)
        return Span(place.path, max(end - 1, 0), end)
    return _span(place.path, place.found)


def _foreign(path: str, found: Lexeme) -> Diagnostic:
    message = f"{shown(found)} is not part of the language"
    return Diagnostic("FRT0109", message, _span(path, found), help="remove it")


def _is_foreign(found: Lexeme) -> bool:
    return found.kind == "word" and not found.text.isascii()


def _foreign_letter(path: str, found: Lexeme, near: str | None = None) -> Diagnostic:
    """A word with a letter that looks like one of ours, or that is of another alphabet."""
    letter = next(char for char in found.text if not char.isascii())
    message = f"`{letter}` (U+{ord(letter):04X}) is not part of the language"
    help = f"did you mean `{near}`?" if near else "names are ASCII letters, digits and _"
    return Diagnostic("FRT0109", message, _span(path, found), help=help)


def for_repair(place: Place, repair: Repair) -> Diagnostic:
    """What to say about a mistake that a repair explains."""
    found = repair.found
    span = _span(place.path, found)
    if _is_foreign(found) and repair.kind != "insert":
        near = repair.word if repair.kind == "spell" else None
        return _foreign_letter(place.path, found, near)
    special = known_mistake(place, exactly=repair.kind == "spell")
    if repair.kind == "name":
        return Diagnostic(
            "FRT0106",
            f"`{found.text}` is a word of the language and can't be a name",
            span,
            help=f"call it `{found.text}_` or another name",
        )
    if repair.kind == "close_text":
        return _unclosed_text(place.path, found)
    if repair.kind in ("remark", "line"):
        habit = wording()["habits"][found.text]
        return Diagnostic("FRT0101", habit["message"], span, help=habit["help"])
    if special is not None:
        return special
    if repair.kind == "spell":
        return Diagnostic(
            "FRT0102",
            f"{shown(found)} is not expected here",
            span,
            help=f"did you mean `{repair.word}`?",
        )
    if repair.kind == "insert":
        return _missing(place, repair)
    if repair.kind == "exchange":
        what = _word_for(place, repair)
        message = f"expected {what}, found {shown(found)}"
        return Diagnostic("FRT0105", message, span, help=f"write {what} instead")
    if found.kind == "other":
        return _foreign(place.path, found)
    return Diagnostic("FRT0105", f"{shown(found)} is not expected here", span, help="remove it")


def _word_for(place: Place, repair: Repair) -> str:
    """What a repair puts, in words; where any operand could stand it is a value."""
    if repair.terminal == "NAME" and {"NUMBER", "STRING"} <= set(place.accepted):
        return "a value"
    word: str = wording()["words"].get(repair.terminal or "", f"`{repair.word}`")
    return word


def _missing(place: Place, repair: Repair) -> Diagnostic:
    found = repair.found
    end = end_before(place.text, found.start)
    span = Span(place.path, max(end - 1, 0), end)
    if repair.word == "}" and repair.terminal == "RBRACE":
        return unclosed_block(place.path, place.text, found.start)
    what = _word_for(place, repair)
    before = "" if found.kind == "end" else f" before {shown(found)}"
    help_text = f"add {what}{before}" if what.startswith("`") else f"add {what}"
    return Diagnostic("FRT0104", f"{what} is missing{before}", span, help=help_text)


def _unclosed_text(path: str, found: Lexeme) -> Diagnostic:
    if found.kind == "quoted":
        return Diagnostic(
            "FRT0108",
            "a text stands in double quotes",
            Span(path, found.start, found.end),
            help='write "…"',
        )
    return Diagnostic(
        "FRT0108",
        "this text has no closing quote",
        Span(path, found.start, found.start + 1),
        help='close it with `"` on the same line',
    )


def for_brace(path: str, text: str, one: Suggestion) -> Diagnostic:
    """What to say about a brace that the indentation asks for, or against."""
    if one.drop:
        return Diagnostic(
            "FRT0105", "`}` is not expected here", Span(path, one.at, one.at + 1), help="remove it"
        )
    end = end_before(text, one.at)
    span = Span(path, max(end - 1, 0), end)
    if one.mark == "{":
        return Diagnostic("FRT0104", "`{` is missing here", span, help="add `{`")
    return _unclosed(path, one.opener, span)


def unclosed_block(path: str, text: str, at: int) -> Diagnostic:
    """A missing ``}``, placed where the indentation says that the block ends."""
    opener, end = _find_unclosed(text, at)
    end = end_before(text, end)
    return _unclosed(path, opener, Span(path, max(end - 1, 0), end))


def _unclosed(path: str, opener: int | None, span: Span) -> Diagnostic:
    notes: tuple[tuple[Span | None, str], ...] = ()
    if opener is not None:
        notes = ((Span(path, opener, opener + 1), "the block is opened here"),)
    return Diagnostic("FRT0103", "a block is not closed", span, notes=notes, help="add `}`")


def _find_unclosed(text: str, at: int) -> tuple[int | None, int]:
    """(the opening brace that most likely lacks its end, where that end should be)."""
    stack: list[tuple[int, int]] = []
    for found in lexemes(text):
        if found.start >= at:
            break
        if found.text == "{":
            stack.append((found.start, line_indent(text, found.start)))
        elif found.text == "}" and stack:
            indent = line_indent(text, found.start)
            first = text[text.rfind("\n", 0, found.start) + 1 : found.start].strip() == ""
            if first and indent < stack[-1][1]:
                return stack[-1][0], found.start
            stack.pop()
    return (stack[-1][0] if stack else None), at


def for_panic(place: Place, dropped: Dropped, table: Tables) -> Diagnostic:
    """What to say where no repair explains the error."""
    found = place.found
    span = _span(place.path, found)
    if found.kind == "end":
        span = Span(place.path, max(len(place.text) - 1, 0), len(place.text))
    if _is_foreign(found):
        return _foreign_letter(place.path, found)
    special = known_mistake(place)
    if special is not None:
        return special
    if dropped.undid_end:
        end = end_before(place.text, found.start)
        return Diagnostic(
            "FRT0105",
            "`}` is not expected here",
            Span(place.path, end - 1, end),
            notes=((span, f"{shown(found)} still belongs to the block"),),
            help="remove it",
        )
    if dropped.at_once and dropped.left_block:
        return unclosed_block(place.path, place.text, found.start)
    if dropped.at_once:
        span = _where(place)
    if found.kind == "open_docstring":
        return Diagnostic(
            "FRT0108",
            "this docstring has no end",
            Span(place.path, found.start, found.start + 3),
            help='close it with `"""`',
        )
    if found.kind in ("open_string", "quoted"):
        return _unclosed_text(place.path, found)
    if found.kind == "other":
        return _foreign(place.path, found)
    if found.text in RESERVED and "NAME" in place.accepted:
        return Diagnostic(
            "FRT0106",
            f"`{found.text}` is a word of the language and can't be a name",
            span,
            help=f"call it `{found.text}_` or another name",
        )
    wanted = expected(place, table)
    block = opened_by(place.cell)
    message = f"{shown(found)} is not expected here"
    if dropped.at_once and wanted:
        return Diagnostic("FRT0101", f"{wanted} before {shown(found)}", span)
    if wanted:
        return Diagnostic("FRT0101", message, span, help=wanted)
    if block:
        return Diagnostic("FRT0101", message, span, help=wording()["blocks"][block])
    return Diagnostic(
        "FRT0101",
        message,
        span,
        help="a file holds structure, pipeline, impl, scheme, auto and binding declarations",
    )


def too_many(path: str, at: int, limit: int) -> Diagnostic:
    return Diagnostic(
        "FRT0112",
        f"more than {limit} syntax errors; the rest of the file was not read",
        Span(path, at, at + 1),
        help="mend the errors above first",
    )
