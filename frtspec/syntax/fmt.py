"""The formatter: one layout for every spec.

It writes the tokens of the file as they are and decides blanks, line ends and comments
only; trailing commas go. So the syntax tree stays the same, and a file with errors is
not touched. Comments are kept, every one: at the end of a line or on a line of their own;
one in the middle of a member moves before it.
"""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile
from frtspec.syntax.build_base import docstring_text
from frtspec.syntax.fmt_align import FAMILIES, align, cells
from frtspec.syntax.fmt_lines import STEP, WIDTH, Line, Writer
from frtspec.syntax.fmt_space import index_brackets
from frtspec.syntax.fmt_tokens import Lexed, Tok, child_starts, lex, nodes_in
from frtspec.syntax.nodes import Node, Token
from frtspec.syntax.parse import parse
from frtspec.syntax.trivia import Comment

_WITH_WHEN = frozenset(
    ("port_in", "port_out", "slot", "part", "point_decl", "let", "point", "yield_", "next", "emit")
)


@dataclass(frozen=True)
class FormatResult:
    """The formatted text, or None with the errors that stand against it."""

    text: str | None
    diagnostics: tuple[Diagnostic, ...]


def format_source(source: SourceFile) -> FormatResult:
    """Format one file. A file with syntax errors is refused: ``text`` is None then."""
    parsed = parse(source)
    if any(d.severity == "error" for d in parsed.diagnostics):
        return FormatResult(None, parsed.diagnostics)
    return FormatResult(_Formatter(lex(source)).text(), parsed.diagnostics)


class _Formatter:
    def __init__(self, lexed: Lexed) -> None:
        self.lexed = lexed
        self.toks = lexed.toks
        self.blocks: dict[int, Node] = {}
        lists = set()
        for node in nodes_in(lexed.tree):
            if node.rule.endswith("_block"):
                self.blocks[lexed.at[node.start]] = node
            elif node.rule.endswith("_list"):
                lists.add(node.start)
        broken = {start for start in lists if self._opens_line(lexed.at[start])}
        self.lists = frozenset(lists)
        self.writer = Writer(self.lists, frozenset(broken), index_brackets(self.toks))

    def text(self) -> str:
        lines: list[Line] = []
        self._members(self.lexed.tree, len(self.toks), 0, lines, None)
        return "".join(f"{_written(line)}\n" for line in lines)

    def _opens_line(self, brace: int) -> bool:
        """Whether the author went to a new line after this brace."""
        return self.toks[brace + 1].line > self.toks[brace].line

    def _index(self, offset: int) -> int:
        return self.lexed.at[offset]

    # ------------------------------------------------------------ blocks

    def _members(
        self, block: Node, end: int, indent: int, lines: list[Line], header: Line | None
    ) -> None:
        """The docstring and the members of a block, with the comments between them.

        ``end``: position of the closing brace, or behind the last token for the file.
        ``header``: the line that opened the block.
        """
        members = [child for child in block.children if child is not None]
        starts = [self._index(child.start) for child in members]
        own: list[Line] = []
        said = self.toks[starts[0] - 1].line if starts and starts[0] else 0
        for number, (member, first) in enumerate(zip(members, starts, strict=True)):
            apart = header is None and number > 0
            gap = self.toks[first].gap
            said, parted = self._gap(gap, said, indent, own, header, apart)
            if own and (self.toks[first].line - said > 1 or apart and not parted):
                own.append(Line(0, "", "blank"))
            behind = starts[number + 1] if number + 1 < len(starts) else end
            own += self._member(member, first, behind, indent)
            said = self.toks[behind - 1].end_line
        gap = self.toks[end].gap if end < len(self.toks) else self.lexed.rest
        if not starts and end < len(self.toks):
            said = self.toks[end - 1].line
        self._gap(gap, said, indent, own, header, False)
        align(own)
        lines += own

    def _gap(
        self,
        gap: list[Comment],
        said: int,
        indent: int,
        lines: list[Line],
        header: Line | None,
        apart: bool,
    ) -> tuple[int, bool]:
        """Write the comments before a member; (line where they end, whether a blank line
        was put). ``said``: the line where the text before them ends."""
        parted = False
        for comment in gap:
            last = lines[-1] if lines else header
            line = self.lexed.line_of(comment)
            beside = not comment.own_line and last is not None
            if beside and last is not None and last.kind == "code" and not last.trailing:
                last.trailing = comment.text
            else:
                if lines and (line - said > 1 or apart and not parted):
                    lines.append(Line(0, "", "blank"))
                parted = True
                lines.append(Line(indent, comment.text, "comment"))
            said = line
        return said, parted

    # ------------------------------------------------------------ members

    def _member(self, member: Node | Token, first: int, end: int, indent: int) -> list[Line]:
        hoisted = [Line(indent, c.text, "comment") for c in self._hoist(first, end)]
        opening = next((at for at in range(first, end) if at in self.blocks), None)
        toks = self.toks[first:end]
        if any(tok.kind == "DOCSTRING" for tok in toks) and opening is None:
            return hoisted + _docstring(toks, indent)
        if opening is None or self._fits_inline(opening, first, end, indent):
            return hoisted + self._plain(member, toks, indent)
        block = self.blocks[opening]
        closing = self._closing(block)
        lines = hoisted + self.writer.lines(self.toks[first : opening + 1], indent)
        self._members(block, closing, indent + STEP, lines, lines[-1])
        return lines + self.writer.lines(self.toks[closing:end], indent)

    def _closing(self, block: Node) -> int:
        return self._index(block.end - 1)

    def _fits_inline(self, opening: int, first: int, end: int, indent: int) -> bool:
        """A block stays on one line where the author wrote its only member there."""
        block = self.blocks[opening]
        closing = self._closing(block)
        inside = self.toks[opening + 1 : closing + 1]
        if any(tok.gap or tok.kind == "DOCSTRING" for tok in inside):
            return False
        if closing == opening + 1:
            return True
        if len(child_starts(block)) > 1 or self._opens_line(opening):
            return False
        nested = any(at in self.blocks for at in range(opening + 1, closing))
        broken = any(tok.start in self.writer.broken for tok in inside)
        width = indent + len(self.writer.flat(self.toks[first:end])[0])
        return not nested and not broken and width <= WIDTH

    def _plain(self, member: Node | Token, toks: list[Tok], indent: int) -> list[Line]:
        """A member without a block; one that fits on one line can stand in a table."""
        lines = self.writer.lines(toks, indent)
        rule = member.rule if isinstance(member, Node) else ""
        if len(lines) > 1:
            return lines
        _, places = self.writer.flat(toks)
        family = FAMILIES.get(rule, "")
        if family:
            lines[0].family = family
            lines[0].cells = tuple(cells(family, toks, places, self.writer.index))
        if rule in _WITH_WHEN:
            whens = [place for tok, place in zip(toks, places, strict=True) if tok.kind == "WHEN"]
            lines[0].when = whens[-1] if whens else -1
        return lines

    def _hoist(self, first: int, end: int) -> list[Comment]:
        """Take the comments that stand neither between members nor between the items of
        a list: they go before the member."""
        found: list[Comment] = []
        inside: list[bool] = []  # for each open bracket: whether it is a list
        at = first
        while at < end:
            tok = self.toks[at]
            if at > first and tok.gap and not (inside and inside[-1]):
                found += tok.gap
                tok.gap = []
            if at in self.blocks:
                at = self._closing(self.blocks[at])
            elif tok.kind in ("LPAR", "LSQB", "LBRACE"):
                inside.append(tok.start in self.lists)
            elif tok.kind in ("RPAR", "RSQB", "RBRACE"):
                inside.pop()
            at += 1
        return found


def _docstring(toks: list[Tok], indent: int) -> list[Line]:
    """A docstring, alone or behind the word ``evidence``."""
    head = "".join(f"{tok.text} " for tok in toks[:-1])
    text = docstring_text(toks[-1].text)
    first, *rest = text.split("\n")
    if not rest and not text.endswith('"'):
        return [Line(indent, f'{head}"""{text}"""')]
    lines = [Line(indent, f'{head}"""{first}'), *(Line(indent, line) for line in rest)]
    indented = first.startswith(" ") or all(line.startswith(" ") for line in rest if line)
    if rest and (head or indented):
        lines = [Line(indent, f'{head}"""'), *(Line(indent, line) for line in (first, *rest))]
    return [*lines, Line(indent, '"""')]


def _written(line: Line) -> str:
    text = f"{' ' * line.indent}{line.text}".rstrip()
    return f"{text}  {line.trailing}" if line.trailing else text
