"""Changes that the server proposes: renames, quick fixes, the one layout."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence

from lsprotocol import types

from frtspec.diag.diagnostic import Diagnostic
from frtspec.lsp.occurrences import Occurrence, Symbol
from frtspec.lsp.positions import offset, span_range, whole
from frtspec.lsp.workspace import Document, Place, Workspace
from frtspec.sema.scope import reserved
from frtspec.syntax.fmt_range import format_lines
from frtspec.syntax.grammar import RESERVED

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_MEANT = re.compile(r"did you mean `([^`]+)`\?")
_ADD = re.compile(r"add `([^`]+)`\Z")
_CALL_IT = re.compile(r"call it `([^`]+)`")
_PLAIN = re.compile(r"\S+\Z")


class Refused(Exception):
    """Why a rename can't be done, in a sentence."""


def uri(path: str) -> str:
    from pygls.uris import from_fs_path

    return from_fs_path(path) or path


# ---------------------------------------------------------------- rename


def renameable(workspace: Workspace, document: Document, at: types.Position) -> Occurrence:
    """The name at a position, if it may be renamed. Raises ``Refused``."""
    one = document.at(offset(document.source, at))
    if one is None:
        raise Refused("there is no name here that can be renamed")
    if one.symbol[0] == "op":
        raise Refused(f"`{one.name}` is an op of the language")
    if not _everywhere(workspace, one.symbol):
        raise Refused(f"`{one.name}` is declared nowhere")
    return one


def rename(
    workspace: Workspace, document: Document, at: types.Position, new: str
) -> types.WorkspaceEdit:
    """Every occurrence in the project, renamed. Raises ``Refused`` where the new name is no
    name or taken, where a file has syntax errors or is not the project's own."""
    one = renameable(workspace, document, at)
    if not _NAME.match(new):
        raise Refused(f"`{new}` is no name: names are ASCII letters, digits and _")
    if new in RESERVED:
        raise Refused(f"`{new}` is a word of the language")
    why = reserved(new)
    if why is not None:
        raise Refused(why)
    symbol = workspace.settled(one.symbol)
    places = _everywhere(workspace, symbol)
    for touched in {other.path: other for other, _ in places}.values():
        _refuse_collision(workspace, touched, symbol, new)
    edits: dict[str, list[types.TextEdit]] = defaultdict(list)
    for other, found in places:
        if not other.whole:
            raise Refused(f"{other.file.name} has syntax errors; mend them first")
        if not workspace.may_write(other):
            raise Refused(f"{other.file.name} belongs to the installed catalog")
        edits[uri(other.path)].append(types.TextEdit(span_range(other.source, found.span), new))
    return types.WorkspaceEdit(changes=dict(edits))


def _everywhere(workspace: Workspace, symbol: Symbol) -> list[Place]:
    """All occurrences; of a structure or pipeline those of every version, which share a name."""
    symbol = workspace.settled(symbol)
    if symbol[0] not in ("structure", "pipeline"):
        places = list(workspace.places(symbol))
        defined = any(one.defines for _, one in places) or symbol[0] == "local"
        return places if defined else []
    kind, name, _ = symbol
    found = [
        (document, one)
        for document in workspace.documents.values()
        for spelt, ones in document.by_symbol.items()
        if spelt[:2] == (kind, name)
        for one in ones
    ]
    return found if any(one.defines for _, one in found) else []


def _refuse_collision(workspace: Workspace, document: Document, symbol: Symbol, new: str) -> None:
    """The new name may not stand for something else where the old one is read."""
    for other in document.by_symbol:
        if other[-1] != new:
            continue
        settled = workspace.settled(other)
        if settled == (*symbol[:-1], new) or _same_space(settled, symbol, new):
            raise Refused(f"`{new}` is taken in {document.file.name}")
    kind = str(symbol[0])
    if kind in ("structure", "pipeline", "scheme", "binding"):
        taken = any(one.name == new for _, one in workspace.declarations(kind))
        if taken:
            raise Refused(f"there is a {kind} `{new}` already")
    if symbol[0] == "impl" and workspace.define((*symbol[:-1], new)):
        raise Refused(f"there is an impl `{new}` for `{symbol[1]}` already")


def _same_space(other: Symbol, symbol: Symbol, new: str) -> bool:
    """Whether two symbols of one declaration share their names: members, locals, indices."""
    spaces = ("member", "seam", "local", "inner")
    if other[0] not in spaces or symbol[0] not in spaces or other[-1] != new:
        return False
    theirs, ours = other[1], symbol[1]
    if theirs == ours:
        return True
    # A pack of an impl is read beside the names of its structure.
    pair = (theirs, ours) if theirs[0] == "impl" else (ours, theirs)  # type: ignore[index]
    impl, structure = pair
    return bool(
        isinstance(impl, tuple)
        and isinstance(structure, tuple)
        and impl[0] == "impl"
        and structure[0] == "structure"
        and impl[1:3] == structure[1:3]
    )


# ---------------------------------------------------------------- layout and fixes


def formatting(document: Document) -> list[types.TextEdit]:
    """The one layout; nothing where the file has syntax errors or is in it already."""
    made = document.formatted
    if made is None or made == document.source.text:
        return []
    return [types.TextEdit(whole(document.source), made)]


def range_formatting(document: Document, asked: types.Range) -> list[types.TextEdit]:
    """The one layout for the members that some lines lie in."""
    last = asked.end.line + (asked.end.character > 0 or asked.end.line == asked.start.line)
    made = format_lines(document.source, asked.start.line + 1, last).text
    if made is None or made == document.source.text:
        return []
    return [types.TextEdit(whole(document.source), made)]


def fixes(
    document: Document, found: Sequence[Diagnostic], around: types.Range
) -> list[types.CodeAction]:
    """What the findings of a range say to do, where that is one edit."""
    low, high = offset(document.source, around.start), offset(document.source, around.end)
    made = []
    for diagnostic in found:
        if diagnostic.span.end < low or diagnostic.span.start > high:
            continue
        fix = _fix(document, diagnostic)
        if fix is not None:
            made.append(fix)
    return made


def _fix(document: Document, diagnostic: Diagnostic) -> types.CodeAction | None:
    """One edit: the word that was meant, a mark that is missing, a word that goes."""
    help, span = diagnostic.help or "", diagnostic.span
    text = document.source.text[span.start : span.end]
    place = span_range(document.source, span)
    meant = _MEANT.match(help) or _CALL_IT.match(help)
    add = _ADD.match(help)
    if meant and _PLAIN.match(text):
        title, edit = f"Replace with `{meant[1]}`", types.TextEdit(place, meant[1])
    elif add and diagnostic.code in ("FRT0103", "FRT0104"):
        at = span.start if diagnostic.code == "FRT0104" else len(document.source.text)
        new = add[1] if diagnostic.code == "FRT0104" else f"{add[1]}\n"
        here = span_range(document.source, type(span)(span.path, at, at))
        title, edit = f"Add `{add[1]}`", types.TextEdit(here, new)
    elif help == "remove it" and text and "\n" not in text:
        title, edit = f"Remove `{text}`", types.TextEdit(place, "")
    else:
        return None
    return types.CodeAction(
        title=title,
        kind=types.CodeActionKind.QuickFix,
        edit=types.WorkspaceEdit(changes={uri(document.path): [edit]}),
        is_preferred=bool(meant),
    )
