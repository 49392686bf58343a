"""Plants mistakes into a spec and says on which lines each may be reported.

A kind is a function that looks at one line (and what is around it) and returns how the
line would be wrong, or None where it can't make that mistake there. Mistakes keep a line
of distance, so that each is one of its own.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from frtspec.syntax.tables import tables


@dataclass
class Line:
    """A line of the text to be planted. ``taken``: too near to a mistake for another."""

    text: str
    taken: bool = False


@dataclass
class Mistake:
    """``lines``: the final numbers of the lines on which a finding is right. ``head``: the
    line of the block, where it is right as well (a seat lacks what was misnamed in it)."""

    kind: str
    index: int
    before: str
    after: str
    around: tuple[int, ...] = (0,)
    head: int | None = None
    lines: set[int] = field(default_factory=set)


@dataclass
class Planted:
    text: str
    mistakes: list[Mistake]


@dataclass
class Site:
    """A line with the lines around it, as a kind sees it."""

    lines: list[Line]
    index: int
    rng: random.Random

    @property
    def text(self) -> str:
        return self.lines[self.index].text

    @property
    def code(self) -> str:
        """The line without its comment; "" where it is one, or lies in a docstring."""
        return "" if self.index in _prose(self.lines) else self.text.split("  #")[0]

    @property
    def word(self) -> str:
        """The first word of the line."""
        return self.code.split(None, 1)[0] if self.code.strip() else ""

    def block(self) -> str:
        """The keyword of the block that the line lies in, by indentation."""
        head = self.head()
        return "" if head is None else self.lines[head].text.split(None, 1)[0]

    def head(self) -> int | None:
        """The line that opens the block."""
        indent = len(self.text) - len(self.text.lstrip())
        for index in range(self.index - 1, -1, -1):
            text = self.lines[index].text
            other = len(text) - len(text.lstrip())
            if text.strip() and other < indent and text.rstrip().endswith("{"):
                return index
        return None


LISTS = ("boundary", "dims", "siblings", "call", "variant")
"""Blocks that hold items, where a last comma is no mistake."""

Kind = Callable[[Site], str | None]


def _prose(lines: list[Line]) -> set[int]:
    """The lines of docstrings and comments."""
    found, inside = set(), False
    for number, line in enumerate(lines):
        marks = line.text.count('"""')
        if inside or marks or line.text.lstrip().startswith("#"):
            found.add(number)
        inside ^= marks == 1
    return found


def _once(pattern: str, new: str | Callable[[re.Match[str]], str], site: Site) -> str | None:
    """The line with one match, chosen at random, replaced; None without a match."""
    texts = [m.span() for m in re.finditer(r'"[^"]*"', site.code)]
    hits = [
        hit
        for hit in re.finditer(pattern, site.code)
        if '"' in hit[0] or not any(start < hit.start() < end - 1 for start, end in texts)
    ]
    if not hits:
        return None
    hit = site.rng.choice(hits)
    put = new(hit) if callable(new) else hit.expand(new)
    return site.text[: hit.start()] + put + site.text[hit.end() :]


def _swapped(word: str, rng: random.Random) -> str:
    """Two neighbouring letters swapped, the first left where it is."""
    places = [i for i in range(1, len(word) - 1) if word[i] != word[i + 1]]
    if not places:
        return f"{word}{word[-1]}"
    i = rng.choice(places)
    return word[:i] + word[i + 1] + word[i] + word[i + 2 :]


# ---------------------------------------------------------------- kinds of syntax


def misspelt_keyword(site: Site) -> str | None:
    if site.word not in tables().starters or site.block() in LISTS:
        return None
    wrong = _swapped(site.word, site.rng)
    return None if wrong in tables().words else site.text.replace(site.word, wrong, 1)


def misspelt_inner_keyword(site: Site) -> str | None:
    if site.word == "expect":
        return None
    words = "version|when|otherwise|where|class|including|against|wire|prove"
    return _once(rf"(?<=\S )\b({words})\b", lambda m: _swapped(m[1], site.rng), site)


def missing_comma(site: Site) -> str | None:
    return _once(r"(?<=[\w\]]), (?=\w)", " ", site)


def stray_comma(site: Site) -> str | None:
    if site.block() in LISTS:
        return None
    if site.word in ("dim", "slot", "param", "in", "out", "let", "point", "pack", "scale", "yield"):
        return f"{site.code.rstrip()},"
    return None


def doubled_comma(site: Site) -> str | None:
    return _once(r"(?<=\w), (?=\w)", ",, ", site)


def missing_colon(site: Site) -> str | None:
    if site.word in ("in", "out", "seat", "at"):
        return _once(r" ?: (?=\w)", " ", site)
    return None


def missing_equals(site: Site) -> str | None:
    if site.word in ("let", "point", "yield", "variant", "param", "slot", "pack", "scale"):
        return _once(r"(?<=\w|\])\s+= ", " ", site)
    return None


def semicolon(site: Site) -> str | None:
    ends = site.code.rstrip()
    return f"{ends};" if ends and ends[-1] not in "{},(" else None


def missing_parenthesis(site: Site) -> str | None:
    """Not in a list of a line an item: the next items read on as arguments, to its end."""
    if site.code.rstrip().endswith(","):
        return None
    return _once(r"(?<=\w)\)", "", site)


def missing_bracket(site: Site) -> str | None:
    return _once(r"(?<=\w)\](?= |$)", "", site) if site.word in ("in", "out", "slot") else None


def wrong_arrow(site: Site) -> str | None:
    return _once("=>", "->", site)


def open_text(site: Site) -> str | None:
    return _once(r'(?<=[\w.>=<])"(?=\s|$)', "", site)


def single_quotes(site: Site) -> str | None:
    return _once(r'"([^"]+)"', r"'\1'", site)


def foreign_character(site: Site) -> str | None:
    return _once(r"(?<=\w) (?=\w)", " § ", site)


def missing_opening_brace(site: Site) -> str | None:
    if not site.code.rstrip().endswith(" {") or site.word in ("dims", "siblings", "boundary"):
        return None
    return None if "=>" in site.code or "match" in site.code else site.code.rstrip()[:-2]


def missing_closing_brace(site: Site) -> str | None:
    return "" if site.code.strip() == "}" and site.text.startswith(" ") else None


def reserved_name(site: Site) -> str | None:
    """A new line that declares a word of the language."""
    word = site.rng.choice(("match", "scan", "rows", "per", "present", "against", "input"))
    if site.word == "dim":
        return f"{site.text}\n  param {word} = 1"
    return None


def habit(site: Site) -> str | None:
    """A new line as another language would have it."""
    if site.word not in ("let", "point", "slot", "param", "pack"):
        return None
    if site.code.rstrip().endswith(","):  # an item of a list, not a line of its own
        return None
    indent = site.text[: len(site.text) - len(site.text.lstrip())]
    other = site.rng.choice(("return y", "import torch", "def f(x)", "// a remark"))
    return f"{site.text}\n{indent}{other}"


# ---------------------------------------------------------------- kinds of meaning


def unknown_name(site: Site) -> str | None:
    """A use, not a definition, of a name of several letters."""
    if site.word not in ("let", "yield", "pack", "scale"):
        return None
    head, mark, value = site.text.partition("= ")
    hits = list(re.finditer(r"(?<![\w.])(?:x|w|act|cond)_\w+", value))
    if not mark or not hits:
        return None
    hit = site.rng.choice(hits)
    return head + mark + value[: hit.start()] + hit[0] + "q" + value[hit.end() :]


def unknown_op(site: Site) -> str | None:
    ops = "rms_norm|layer_norm|gelu_tanh|silu|cast|linear|chunk|contract"
    if site.word not in ("let", "point", "yield"):
        return None
    return _once(rf"\b({ops})(?=\()", lambda m: f"{m[1]}_x", site)


def unknown_dim(site: Site) -> str | None:
    if site.word not in ("in", "out", "slot"):
        return None
    return _once(r"(?<=[\[ ])[A-Z]\w*(?=[\],])", "Zq", site)


def unknown_dtype(site: Site) -> str | None:
    return _once(r"(?<=: )host\b", "hots", site) if site.word in ("in", "out") else None


def unknown_variant_value(site: Site) -> str | None:
    return _once(r"(?<= is )(\w+)", r"\1_x", site)


def unknown_variant_set(site: Site) -> str | None:
    if site.word != "variant" or site.block() != "seat":
        return None
    return _once(r"(?<== )(\w+)$", r"\1_x", site)


def missing_otherwise(site: Site) -> str | None:
    return _once(r" otherwise \w+$", "", site) if site.word == "let" else None


def wrong_version(site: Site) -> str | None:
    return _once(r"version 1\b", "version 7", site) if site.word in ("seat", "at") else None


def wrong_layout(site: Site) -> str | None:
    return _once(r"\bout_in\b", "out_on", site)


def unknown_slot(site: Site) -> str | None:
    if site.word != "slot" or site.block() != "seat":
        return None
    return _once(r"(?<=slot )(\w+)", r"\1_x", site)


def unknown_point(site: Site) -> str | None:
    if site.word != "point" or site.block() != "seat":
        return None
    return _once(r"(?<=point )(\w+)", r"\1_x", site)


def unknown_metric(site: Site) -> str | None:
    return _once(r"\bcosine\b", "cosin", site) if site.word == "gate" else None


def unknown_fact(site: Site) -> str | None:
    return _once(r"(?<=expect )(\w+)", r"\1_x", site)


def unknown_cadence(site: Site) -> str | None:
    if site.word not in ("window", "buffer", "state", "cadence", "substructure"):
        return None
    return _once(r"(?<=cadence )(\w+)", r"\1_x", site)


def unknown_capture(site: Site) -> str | None:
    return _once(r"(?<=capture )(\w+)", r"\1_x", site) if site.word == "capture" else None


def unknown_segment_kind(site: Site) -> str | None:
    return _once(r"(?<=: )(\w+)(?= in )", r"\1_x", site) if site.word == "segment" else None


def unknown_stage(site: Site) -> str | None:
    return _once(r"(?<= in )(\w+)(?= \{)", r"\1_x", site) if site.word == "segment" else None


def unknown_export(site: Site) -> str | None:
    return _once(r"^ +(\w+)(?= =)", r"\g<0>_x", site) if site.block() == "export" else None


def unknown_role_kind(site: Site) -> str | None:
    if site.word != "role":
        return None
    return _once(r"(?<=: )(linear|conv|\w+_norm|activation|parameter)\b", r"\1_x", site)


def duplicate(site: Site) -> str | None:
    """A declaration that is there twice."""
    if site.block() in LISTS:
        return None
    if site.word in ("slot", "param", "variant", "in", "scale", "pack"):
        ends = site.code.rstrip()
        return f"{site.text}\n{ends}" if ends and ends[-1] not in "{," else None
    return None


SYNTAX: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        misspelt_keyword,
        misspelt_inner_keyword,
        missing_comma,
        stray_comma,
        doubled_comma,
        missing_colon,
        missing_equals,
        semicolon,
        missing_parenthesis,
        missing_bracket,
        wrong_arrow,
        open_text,
        single_quotes,
        foreign_character,
        missing_opening_brace,
        missing_closing_brace,
        reserved_name,
        habit,
    )
}
"""The text does not read on."""

MEANING: dict[str, Kind] = {
    kind.__name__: kind
    for kind in (
        unknown_name,
        unknown_op,
        unknown_dim,
        unknown_dtype,
        unknown_variant_value,
        unknown_variant_set,
        missing_otherwise,
        wrong_version,
        wrong_layout,
        unknown_slot,
        unknown_point,
        unknown_metric,
        unknown_fact,
        unknown_cadence,
        unknown_capture,
        unknown_segment_kind,
        unknown_stage,
        unknown_export,
        unknown_role_kind,
        duplicate,
    )
}
"""The text reads on, and says what can't be."""

_AROUND = {
    "missing_opening_brace": (0, 1),
    "missing_closing_brace": (-1, 0, 1),
    "stray_comma": (0, 1),
    "missing_parenthesis": (0, 1),
    "missing_bracket": (0, 1),
}
"""Lines beside that of the mistake on which a finding is right, too: what is missing at the
end of a line may be missed at the start of the next."""


_ONE_OF = frozenset(("missing_opening_brace", "missing_closing_brace"))
"""Of these a file gets one: without both its braces a block is none, and no mistake."""


def plant(text: str, seed: int, kinds: dict[str, Kind], count: int = 8) -> Planted:
    """``text`` with up to ``count`` mistakes of different kinds, as many as have room."""
    rng = random.Random(seed)
    lines = [Line(line) for line in text.splitlines()]
    order = sorted(kinds)
    rng.shuffle(order)
    mistakes: list[Mistake] = []
    for kind in order:
        if len(mistakes) == count:
            break
        if kind in _ONE_OF and any(m.kind in _ONE_OF for m in mistakes):
            continue
        places = [i for i, line in enumerate(lines) if i and not line.taken]
        rng.shuffle(places)
        for index in places:
            new = kinds[kind](Site(lines, index, rng))
            if new is None or new == lines[index].text:
                continue
            site = Site(lines, index, rng)
            head = site.head() if kind in ("unknown_slot", "unknown_point") else None
            around = _AROUND.get(kind, (0,))
            mistakes.append(Mistake(kind, index, lines[index].text, new, around, head))
            for near in range(index - 2, index + 3):
                if 0 <= near < len(lines):
                    lines[near].taken = True
            break
    return _finished(lines, mistakes)


def _finished(lines: list[Line], mistakes: list[Mistake]) -> Planted:
    changed = {mistake.index: mistake for mistake in mistakes}
    out: list[str] = []
    starts: list[int] = []  # the number of the first line that came of each line
    for index, line in enumerate(lines):
        starts.append(len(out) + 1)
        mistake = changed.get(index)
        new = line.text if mistake is None else mistake.after
        if mistake is None or mistake.after:
            out.extend(str(new).split("\n"))
    starts.append(len(out) + 1)
    for mistake in mistakes:
        first, behind = starts[mistake.index], starts[mistake.index + 1]
        mistake.lines = set(range(first, behind)) | {first + step for step in mistake.around}
        if mistake.head is not None:
            mistake.lines.add(starts[mistake.head])
    return Planted("\n".join(out) + "\n", mistakes)
