"""Python source as finished strings: expressions with their precedence, literals, docstrings.

Everything that ends up in a generated file passes through here once, so that
quoting, minimal parentheses and number formats are decided in one place.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

WIDTH = 100

TERNARY, OR, AND, NOT, COMPARE, ADD, MUL, UNARY, POWER, PRIMARY, ATOM = range(1, 12)

_BINARY: dict[str, int] = {
    "or": OR,
    "and": AND,
    "+": ADD,
    "-": ADD,
    "*": MUL,
    "/": MUL,
    "//": MUL,
    "%": MUL,
    "@": MUL,
    "**": POWER,
    **dict.fromkeys(("==", "!=", "<", "<=", ">", ">=", "in", "not in", "is", "is not"), COMPARE),
}


@dataclass(frozen=True, slots=True)
class Py:
    """A Python expression and how tightly it binds."""

    text: str
    level: int = ATOM

    def __str__(self) -> str:
        return self.text

    def at(self, level: int) -> str:
        """The text, in parentheses when it binds more loosely than ``level``."""
        return self.text if self.level >= level else f"({self.text})"

    def method(self, name: str, *args: Py | str) -> Py:
        """``self.name(args)``."""
        return Py(f"{self.at(PRIMARY)}.{name}({_join(args)})", PRIMARY)

    def attr(self, name: str) -> Py:
        """``self.name``."""
        return Py(f"{self.at(PRIMARY)}.{name}", PRIMARY)

    def item(self, *items: Py | str) -> Py:
        """``self[items]``."""
        return Py(f"{self.at(PRIMARY)}[{_join(items)}]", PRIMARY)


def _join(args: Iterable[Py | str]) -> str:
    return ", ".join(str(arg) for arg in args)


def call(function: str, /, *args: Py | str, **keywords: Py | str) -> Py:
    """``function(args, key=value)``."""
    named = [f"{key}={value}" for key, value in keywords.items()]
    return Py(f"{function}({_join([*args, *named])})", PRIMARY)


def tuple_of(items: Sequence[Py | str]) -> Py:
    """``(a, b)``; one item keeps its comma."""
    return Py(f"({_join(items)},)" if len(items) == 1 else f"({_join(items)})")


def binary(op: str, left: Py, right: Py) -> Py:
    """``left op right`` with the parentheses that keep this tree, and those a reader wants.

    ``@`` shares its precedence with ``*``; it is set off with parentheses there.
    """
    level = _BINARY[op]
    if op == "**":
        return Py(f"{left.at(PRIMARY)} ** {right.at(UNARY)}", POWER)
    if level == COMPARE:
        return Py(f"{left.at(ADD)} {op} {right.at(ADD)}", COMPARE)
    left_level = ATOM if level == MUL and _mixes_matmul(op, left) else level
    return Py(f"{left.at(left_level)} {op} {right.at(level + 1)}", level)


def _mixes_matmul(op: str, left: Py) -> bool:
    return left.level == MUL and (op == "@") != (" @ " in left.text)


def negative(operand: Py) -> Py:
    """``-operand``."""
    return Py(f"-{operand.at(UNARY)}", UNARY)


def ternary(condition: Py, then: Py, otherwise: Py) -> Py:
    """``then if condition else otherwise``."""
    return Py(f"{then.at(OR)} if {condition.at(OR)} else {otherwise.at(TERNARY)}", TERNARY)


def number(value: Decimal | float) -> Py:
    """A number literal, as a person would write it: ``1e-6``, ``0.995``, ``1048576``."""
    text = number_text(value)
    return Py(text, UNARY if text.startswith("-") else ATOM)


def number_text(value: Decimal | float) -> str:
    """The shortest literal that reads back to the same number."""
    if isinstance(value, bool):
        raise TypeError("a bool is no number literal")
    if isinstance(value, Decimal) and value == value.to_integral_value() and _written_whole(value):
        return str(int(value))
    if isinstance(value, int):
        return str(value)
    return re.sub(r"e([+-]?)0*(\d+)$", _exponent, repr(float(value)))


def _written_whole(value: Decimal) -> bool:
    exponent = value.as_tuple().exponent
    return isinstance(exponent, int) and exponent >= 0


def _exponent(match: re.Match[str]) -> str:
    sign = "-" if match[1] == "-" else ""
    return f"e{sign}{match[2]}"


def pyrepr(value: object) -> str:
    """The literal for a plain value: what templates put wherever a value stands.

    Takes None, bool, numbers (``Decimal`` too), str, and tuples, lists and
    mappings of those; ``Py`` passes through as the expression it is. Raises
    ``TypeError`` for anything else, sets included (their order is no fact).
    """
    if isinstance(value, Py):
        return value.text
    if value is None or isinstance(value, bool):
        return repr(value)
    if isinstance(value, (int, float, Decimal)):
        return number_text(value)
    if isinstance(value, str):
        return quoted(value)
    if isinstance(value, tuple):
        inner = ", ".join(pyrepr(item) for item in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, list):
        return f"[{', '.join(pyrepr(item) for item in value)}]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{pyrepr(k)}: {pyrepr(v)}" for k, v in value.items()) + "}"
    raise TypeError(f"no literal for {type(value).__name__}")


def quoted(text: str) -> str:
    """A string literal in double quotes, or in single ones where that saves escapes."""
    if '"' in text and "'" not in text:
        return "'" + "".join(_escaped(ch, "'") for ch in text) + "'"
    return '"' + "".join(_escaped(ch, '"') for ch in text) + '"'


def text_literal(text: str, room: int = 90) -> str:
    """A sentence as a literal; one longer than ``room`` comes in pieces, in parentheses.

    Pieces are made only where two of them cannot share a line, which linters refuse.
    """
    pieces = textwrap.wrap(
        text, min(room, 80), drop_whitespace=False, break_long_words=False, break_on_hyphens=False
    )
    if len(text) <= room or "".join(pieces) != text:
        return quoted(text)
    return "(" + " ".join(quoted(piece) for piece in pieces) + ")"


_SHORT = {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def _escaped(char: str, quote: str) -> str:
    if char == quote:
        return "\\" + char
    if char in _SHORT:
        return _SHORT[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def fstring(parts: Sequence[tuple[bool, str]]) -> Py:
    """A string with holes: ``(True, expression)`` is a hole, ``(False, text)`` literal text.

    Without holes this is a plain string literal; a single hole stays an f-string.
    """
    if not any(hole for hole, _ in parts):
        return Py(quoted("".join(text for _, text in parts)))
    out = []
    for hole, text in parts:
        if hole:
            # Before Python 3.12 a hole may not hold the quotes of the string around it.
            out.append("{" + text.replace('"', "'") + "}")
        else:
            literal = "".join(_escaped(ch, '"') for ch in text)
            out.append(literal.replace("{", "{{").replace("}", "}}"))
    return Py('f"' + "".join(out) + '"')


def doc_lines(text: str) -> list[str]:
    """Lines of a docstring's text, safe between triple double quotes; none is too long."""
    out: list[str] = []
    for line in text.expandtabs(4).splitlines():
        safe = "".join(ch if ch.isprintable() and ch not in '\\"' else _in_doc(ch) for ch in line)
        indent = safe[: len(safe) - len(safe.lstrip())]
        out += [safe.rstrip()] if len(safe) <= WIDTH else wrapped(safe.strip(), indent, indent)
    return out


def told_lines(doc: str, evidence: Sequence[str]) -> list[str]:
    """What a spec tells about a declaration, as lines of a docstring: its own docstring,
    then its evidence."""
    lines = doc_lines(doc)
    for text in evidence:
        lines += [*([""] if lines else []), "Evidence:", *doc_lines(text)]
    return lines


def _in_doc(char: str) -> str:
    # A lone quote is harmless, three in a row or one before the closing three are not.
    return '\\"' if char == '"' else _escaped(char, '"')


def comment_text(text: str) -> str:
    """Text that stays on one comment line whatever it holds."""
    return "".join(ch if ch.isprintable() else _escaped(ch, '"') for ch in text)


def docstring(text: str, depth: int = 0) -> list[str]:
    """One paragraph as the lines of a docstring ``depth`` levels in, with room for its quotes.

    A name and its shape in brackets stay on one line.
    """
    whole = re.sub(
        r"\S+ \[[^\]]*\]", lambda shape: shape[0].replace(" ", "\N{NO-BREAK SPACE}"), text
    )
    lines = wrapped(whole, width=WIDTH - 4 * depth - len('""""""'))
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines]


def wrapped(text: str, indent: str = "", hang: str = "", width: int = WIDTH) -> list[str]:
    """``text`` broken at spaces to ``width``, first line after ``indent``, others after ``hang``."""
    return textwrap.wrap(
        text,
        width=width,
        initial_indent=indent,
        subsequent_indent=hang,
        break_long_words=False,
        break_on_hyphens=False,
    )


def natural(name: str) -> list[tuple[bool, int, str]]:
    """Sorts as import sorters do: numbers inside names by size, ``w4a4`` before ``w4a16``."""
    parts = re.findall(r"\d+|\D+", name)
    return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in parts]


def imports(lines: Iterable[str]) -> tuple[str, ...]:
    """``from … import …`` lines in the order of their modules, each once."""
    return tuple(sorted(dict.fromkeys(lines), key=lambda line: (line.split()[1], line)))


def indented(lines: Iterable[str], by: int = 1) -> list[str]:
    """Lines moved right by ``by`` levels; empty lines stay empty."""
    pad = "    " * by
    return [pad + line if line else line for line in lines]
