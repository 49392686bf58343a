"""One member as lines: on one line where it fits, else its lists broken, one item a line."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from frtspec.syntax.fmt_space import blanks
from frtspec.syntax.fmt_tokens import Tok
from frtspec.syntax.trivia import Comment

WIDTH = 110
STEP = 2
_OPEN = {"LPAR": "RPAR", "LSQB": "RSQB", "LBRACE": "RBRACE"}
_FILLED = frozenset(("names", "listed_names", "paths", "part_params", "uses", "refs"))
_CLOSE = frozenset(_OPEN.values())


@dataclass
class Line:
    """A line to be written.

    kind      code, comment or blank
    cells     positions in ``text`` at which the cells of a table begin
    family    lines of one family that follow each other are one table; "" for none
    when      the position of a closing ``when`` in ``text``, or -1
    trailing  a comment behind it
    """

    indent: int
    text: str
    kind: str = "code"
    cells: tuple[int, ...] = ()
    family: str = ""
    when: int = -1
    trailing: str = ""


@dataclass
class Item:
    """One item of a broken list, with the comments that belong to it."""

    toks: list[Tok] = field(default_factory=list)
    before: list[Comment] = field(default_factory=list)
    after: Comment | None = None


class Writer:
    """Writes runs of tokens.

    ``lists``: offsets of braces that open a list; ``broken``: those that the author
    broke after the brace; ``index``: brackets of an index.
    """

    def __init__(
        self, lists: frozenset[int], broken: frozenset[int], index: frozenset[int]
    ) -> None:
        self.lists = lists
        self.broken = broken
        self.index = index

    # ------------------------------------------------------------ flat

    def flat(self, toks: Sequence[Tok]) -> tuple[str, list[int]]:
        """The run on one line, without trailing commas; where each token stands in it."""
        parts: list[str] = []
        places: list[int] = []
        width = 0
        before: Tok | None = None
        for at, tok in enumerate(toks):
            if _trailing_comma(toks, at):
                places.append(width)
                continue
            if before is not None:
                gap = blanks(before, tok, index_bracket=tok.start in self.index)
                parts.append(gap)
                width += len(gap)
            places.append(width)
            parts.append(tok.text)
            width += len(tok.text)
            before = tok
        return "".join(parts), places

    # ------------------------------------------------------------ lines

    def lines(self, toks: Sequence[Tok], indent: int) -> list[Line]:
        """The run as lines. Comments may stand between the items of its lists only."""
        if not self._must_break(toks):
            text, _ = self.flat(toks)
            if indent + len(text) <= WIDTH:
                return [Line(indent, text)]
        opening = self._group(toks)
        if opening is None:
            return [Line(indent, self.flat(toks)[0])]
        closing = _match(toks, opening)
        head, _ = self.flat(toks[: opening + 1])
        if toks[opening].rule in _FILLED:
            found = [Line(indent, head), *self._filled(toks[opening + 1 : closing], indent + STEP)]
            return found + self.lines(toks[closing:], indent)
        items, dangling, beside = _items(toks, opening, closing)
        found = [Line(indent, head, trailing=beside.text if beside else "")]
        for number, item in enumerate(items, start=1):
            found += [Line(indent + STEP, c.text, "comment") for c in item.before]
            lines = self.lines(item.toks, indent + STEP)
            if number < len(items) and toks[opening].rule != "seam_list":
                lines[-1].text += ","
            if item.after is not None:
                lines[-1].trailing = item.after.text
            found += lines
        found += [Line(indent + STEP, c.text, "comment") for c in dangling]
        return found + self.lines(toks[closing:], indent)

    def _filled(self, toks: Sequence[Tok], indent: int) -> list[Line]:
        """Names and other short items: as many on a line as fit."""
        lines = [Line(indent, "")]
        items: list[list[Tok]] = [[]]
        for tok in toks:
            if tok.kind == "COMMA":
                items.append([])
            else:
                items[-1].append(tok)
        words = [self.flat(item)[0] for item in items if item]
        for number, word in enumerate(words, start=1):
            text = word + ("," if number < len(words) else "")
            if not lines[-1].text:
                lines[-1].text = text
            elif indent + len(lines[-1].text) + 1 + len(text) <= WIDTH:
                lines[-1].text += f" {text}"
            else:
                lines.append(Line(indent, text))
        return lines

    def _must_break(self, toks: Sequence[Tok]) -> bool:
        return any(tok.start in self.broken for tok in toks) or any(tok.gap for tok in toks[1:])

    def _group(self, toks: Sequence[Tok]) -> int | None:
        """The bracket to break: a list that has to be, else the first list at the top,
        else the longest parenthesis there."""
        tops = _top_groups(toks)
        lists = [at for at, _ in tops if toks[at].start in self.lists]
        for at in lists:
            if self._must_break(toks[at : _match(toks, at) + 1]):
                return at
        full = [at for at in lists if _match(toks, at) > at + 1]
        if full:
            return full[0]
        rounds = [(end - at, at) for at, end in tops if toks[at].kind == "LPAR" and end > at + 1]
        return max(rounds)[1] if rounds else None


def _trailing_comma(toks: Sequence[Tok], at: int) -> bool:
    if toks[at].kind != "COMMA" or at + 1 >= len(toks):
        return False
    if toks[at].rule == "tuple_" and _first_comma(toks, at):
        return False  # `(a,)` is a tuple only by its comma
    return toks[at + 1].kind in _CLOSE


def _first_comma(toks: Sequence[Tok], at: int) -> bool:
    depth = 0
    for i in range(at - 1, -1, -1):
        kind = toks[i].kind
        depth += (kind in _CLOSE) - (kind in _OPEN)
        if depth < 0:
            return True
        if depth == 0 and kind == "COMMA":
            return False
    return True


def _match(toks: Sequence[Tok], opening: int) -> int:
    depth = 0
    for i in range(opening, len(toks)):
        depth += (toks[i].kind in _OPEN) - (toks[i].kind in _CLOSE)
        if depth == 0:
            return i
    raise AssertionError("brackets are balanced in a parsed file")


def _top_groups(toks: Sequence[Tok]) -> list[tuple[int, int]]:
    found = []
    at = 0
    while at < len(toks):
        if toks[at].kind in _OPEN and at + 1 < len(toks):
            end = _match(toks, at)
            found.append((at, end))
            at = end
        at += 1
    return found


def _items(
    toks: Sequence[Tok], opening: int, closing: int
) -> tuple[list[Item], list[Comment], Comment | None]:
    """(items of a list, comments before its closing bracket, comment beside the opening)."""
    beside: Comment | None = None
    dangling: list[Comment] = []
    items: list[Item] = []
    current = Item()
    depth = 0
    for at in range(opening + 1, closing + 1):
        tok = toks[at]
        if depth == 0:
            if tok.rule == "seam_gate" and tok.kind == "GATE" and current.toks:
                items.append(current)
                current = Item()
            for comment in tok.gap:
                owner = current if current.toks else items[-1] if items else None
                if not comment.own_line and owner is not None and owner.after is None:
                    owner.after = comment
                elif not comment.own_line and owner is None:
                    beside = comment
                elif at == closing:
                    dangling.append(comment)
                else:
                    current.before.append(comment)
            tok.gap = []
        depth += (tok.kind in _OPEN) - (tok.kind in _CLOSE)
        if depth == 0 and tok.kind == "COMMA" and tok.rule != "seam_gate":
            items.append(current)
            current = Item()
        elif at < closing:
            current.toks.append(tok)
    if current.toks:
        items.append(current)
    else:
        dangling = current.before + dangling
    return items, dangling, beside
