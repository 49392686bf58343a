"""Symbols of a document and of the whole project."""

from __future__ import annotations

from lsprotocol import types

from frtspec.lsp.describe import outline
from frtspec.lsp.edits import uri
from frtspec.lsp.occurrences import Occurrence
from frtspec.lsp.positions import span_range
from frtspec.lsp.workspace import Document, Workspace

_K = types.SymbolKind
_KINDS = {
    "structure": _K.Class,
    "pipeline": _K.Class,
    "impl": _K.Method,
    "scheme": _K.Module,
    "binding": _K.Namespace,
    "seat": _K.Object,
    "slot": _K.Field,
    "point": _K.Event,
    "variant": _K.Enum,
    "value": _K.EnumMember,
    "dim": _K.TypeParameter,
    "input": _K.Interface,
    "output": _K.Interface,
    "seam": _K.Interface,
    "stage": _K.Function,
    "loop": _K.Function,
    "pack": _K.Variable,
    "scale": _K.Variable,
    "param": _K.Property,
}
_DECLARATIONS = ("structure", "pipeline", "impl", "scheme", "binding")
MOST = 200
"""Symbols of the project that one answer holds."""


def document_symbols(document: Document) -> list[types.DocumentSymbol]:
    """Declarations with their members, nested as the text is; names that are bound again
    once."""
    top: list[types.DocumentSymbol] = []
    open_: list[tuple[Occurrence, types.DocumentSymbol]] = []
    seen = set()
    defining = [o for o in document.occurrences if o.whole is not None and o.kind in _KINDS]
    for one in defining:
        whole = one.whole
        if whole is None or one.symbol in seen:
            continue
        seen.add(one.symbol)
        while open_ and not _holds(open_[-1][0], one):
            open_.pop()
        made = types.DocumentSymbol(
            name=one.name,
            kind=_KINDS[one.kind],
            range=span_range(document.source, whole),
            selection_range=span_range(document.source, one.span),
            detail=one.kind,
            children=[],
        )
        siblings = open_[-1][1].children if open_ else top
        assert isinstance(siblings, list)
        siblings.append(made)
        open_.append((one, made))
    return top


def _holds(outer: Occurrence, inner: Occurrence) -> bool:
    """Whether a definition lies in another's block; names of one member stand side by side,
    but the values of a variant below it."""
    if outer.whole is None or inner.whole is None:
        return False
    if outer.whole == inner.whole:
        return outer.kind == "variant" and inner.kind == "value"
    return outer.whole.start <= inner.whole.start and inner.whole.end <= outer.whole.end


def workspace_symbols(workspace: Workspace, query: str) -> list[types.WorkspaceSymbol]:
    """Declarations and their members whose names hold the letters of the query in order."""
    wanted = query.casefold()
    found: list[tuple[tuple[bool, bool, str], Document, Occurrence]] = []
    for document in workspace.documents.values():
        for one in document.definitions:
            if one.kind not in _KINDS:
                continue
            name = one.name.casefold()
            if not _letters_in_order(wanted, name) or not wanted and one.kind not in _DECLARATIONS:
                continue
            rank = (one.kind not in _DECLARATIONS, wanted not in name, one.name)
            found.append((rank, document, one))
    found.sort(key=lambda row: row[0])
    return [_symbol(document, one) for _, document, one in found[:MOST]]


def _symbol(document: Document, one: Occurrence) -> types.WorkspaceSymbol:
    declares = one.kind in _DECLARATIONS
    return types.WorkspaceSymbol(
        location=types.Location(uri(document.path), span_range(document.source, one.span)),
        name=one.name,
        kind=_KINDS[one.kind],
        container_name=outline(document, one) if declares else document.file.name,
    )


def _letters_in_order(letters: str, name: str) -> bool:
    rest = iter(name)
    return all(letter in rest for letter in letters)
