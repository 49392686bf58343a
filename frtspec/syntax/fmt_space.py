"""Blanks between two tokens of one line."""

from __future__ import annotations

from frtspec.syntax.fmt_tokens import Tok

_TIGHT_AFTER = frozenset(("LPAR", "LSQB", "DOT"))
_TIGHT_BEFORE = frozenset(("RPAR", "RSQB", "COMMA", "DOT", "OPT"))
_CALLS = frozenset(("call", "view_args", "role_chunks"))


def blanks(a: Tok, b: Tok, *, index_bracket: bool) -> str:
    """What stands between ``a`` and ``b``.

    ``index_bracket``: ``b`` opens the index of a repeated tensor, ``w[i]``.
    """
    if a.kind in _TIGHT_AFTER or b.kind in _TIGHT_BEFORE or a.unary:
        return ""
    if a.kind == "LBRACE" and b.kind == "RBRACE":
        return ""
    if a.kind == "RANGE":
        return " " if a.rule == "open_range" else ""
    if b.kind == "RANGE":
        return ""
    if b.kind == "LPAR":
        return "" if b.rule in _CALLS else " "
    if b.kind == "LSQB":
        return " " if b.rule == "bracket" and not index_bracket else ""
    if "COLON" in (a.kind, b.kind):
        rule = a.rule if a.kind == "COLON" else b.rule
        if rule == "slice":
            return " " if a.kind == "COMMA" else ""
        if rule == "stat" and b.kind == "COLON":
            return ""
    if b.rule == "seam_gate" and b.kind == "GATE":
        return "  "
    return " "


def index_brackets(toks: list[Tok]) -> frozenset[int]:
    """Offsets of the brackets that hold an index: the first of two, or one before ``?``."""
    found = set()
    for at, tok in enumerate(toks):
        if tok.kind != "LSQB" or tok.rule != "bracket":
            continue
        close = _closing(toks, at)
        after = toks[close + 1] if close + 1 < len(toks) else None
        if after is None:
            continue
        again = after.kind == "LSQB" and after.rule == "bracket"
        if again or after.kind == "OPT" or _of_structure(toks, close + 1):
            found.add(tok.start)
    return frozenset(found)


def _of_structure(toks: list[Tok], at: int) -> bool:
    following = toks[at : at + 2]
    return [t.kind for t in following] == ["COLON", "STRUCTURE"]


def _closing(toks: list[Tok], at: int) -> int:
    depth = 0
    for i in range(at, len(toks)):
        depth += (toks[i].kind == "LSQB") - (toks[i].kind == "RSQB")
        if depth == 0:
            return i
    return len(toks) - 1
