"""The protocol's side: which request is answered by what, and findings as the text changes."""

from __future__ import annotations

import asyncio
import gc
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lsprotocol import types
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.uris import to_fs_path

from frtspec import __version__, resources
from frtspec.config import load_config
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import Span
from frtspec.docgen.costs import read_sizes
from frtspec.lsp import edits, outlines
from frtspec.lsp.complete import completions
from frtspec.lsp.describe import Describer
from frtspec.lsp.positions import offset, span_range
from frtspec.lsp.workspace import Document, Place, Workspace

QUIET = 0.15
"""Seconds without a key before a text is checked."""

_SEVERITIES = {
    "error": types.DiagnosticSeverity.Error,
    "warning": types.DiagnosticSeverity.Warning,
    "note": types.DiagnosticSeverity.Information,
}


class Server(LanguageServer):
    """One project. Requests are answered on the loop's thread, files checked on another."""

    def __init__(self) -> None:
        super().__init__("frtspec", __version__)
        self.project = Workspace(Path.cwd(), load_config(Path.cwd()).config)
        self.describer = Describer(self.project)
        self.opened: set[str] = set()
        self.found: dict[str, list[Diagnostic]] = {}
        self._waiting: dict[str, asyncio.TimerHandle] = {}
        self._moved: set[str] = set()
        self._stale: set[str] = set()
        self._catching_up = False
        self._checker = ThreadPoolExecutor(1, "check")

    def begin(self, folder: Path) -> None:
        """Reads the project's files and the catalog's, and learns what they mean."""
        self.project = Workspace.of(folder)
        roots = self.project.config.specs or (resources.specs_dir(),)
        try:
            sizes = tuple(size for root in roots for size in read_sizes(root / "sizes.toml"))
        except ValueError:  # `frtspec docs` says what is wrong with it
            sizes = ()
        self.describer = Describer(self.project, sizes)
        for document in self.project.documents.values():
            # Read now, so that no request waits for it.
            _ = document.by_symbol, document.definitions, document.host_paths
        gc.freeze()

    def learn(self) -> None:
        self._checker.submit(self.project.check_all)

    def document(self, uri: str) -> Document:
        """The document of a request, as the editor has it."""
        path = _path(uri)
        known = self.project.documents.get(path)
        if known is None or path not in self.opened:
            text = self.workspace.get_text_document(uri).source
            known = self.project.edit(path, text)
        return known

    # ------------------------------------------------------------ checking

    def changed(self, uri: str) -> None:
        """Takes over the text of a file and has it checked when the keys are quiet."""
        path = _path(uri)
        self.opened.add(path)
        before = self.project.documents.get(path)
        after = self.project.edit(path, self.workspace.get_text_document(uri).source)
        if after is not before:
            self._moved.add(path)
        waiting = self._waiting.pop(path, None)
        if waiting is not None:
            waiting.cancel()
        loop = asyncio.get_running_loop()
        self._waiting[path] = loop.call_later(QUIET, self._start, path)

    def _start(self, path: str) -> None:
        self._waiting.pop(path, None)
        asyncio.ensure_future(self._check(path))

    async def _check(self, path: str) -> None:
        """Publishes what is found in the file, then, while no key is pressed, in open files
        that depend on it. A result that the text has left behind is dropped: a later check is
        on its way."""
        await self._check_one(path)
        if path in self._moved:
            self._moved.discard(path)
            loop = asyncio.get_running_loop()
            self._stale |= set(
                await loop.run_in_executor(
                    self._checker, self.project.dependents, path, sorted(self.opened)
                )
            )
        await self._catch_up()

    async def _catch_up(self) -> None:
        if self._catching_up:
            return
        self._catching_up = True
        try:
            while self._stale and not self._waiting:
                await self._check_one(self._stale.pop())
        finally:
            self._catching_up = False

    async def _check_one(self, path: str) -> None:
        document = self.project.documents.get(path)
        if document is None:
            return
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._checker, self.project.check, path)
        if self.project.documents.get(path) is document and path in self.opened:
            self.found[path] = found
            self._publish(document, found)

    def _publish(self, document: Document, found: list[Diagnostic]) -> None:
        items = [self._diagnostic(document, one) for one in found]
        self.text_document_publish_diagnostics(
            types.PublishDiagnosticsParams(edits.uri(document.path), items)
        )

    def _diagnostic(self, document: Document, one: Diagnostic) -> types.Diagnostic:
        remarks = [text for span, text in one.notes if span is None or not span.path]
        lines = [one.message, *remarks, *([f"help: {one.help}"] if one.help else [])]
        related = []
        for span, text in one.notes:
            other = None if span is None else self.project.documents.get(span.path)
            if span is not None and other is not None:
                place = types.Location(edits.uri(span.path), span_range(other.source, span))
                related.append(types.DiagnosticRelatedInformation(place, text))
        return types.Diagnostic(
            range=span_range(document.source, _shown(document, one.span)),
            message="\n".join(lines),
            severity=_SEVERITIES[one.severity],
            code=one.code,
            source="frtspec",
            related_information=related or None,
        )

    def closed(self, uri: str) -> None:
        path = _path(uri)
        self.opened.discard(path)
        self.found.pop(path, None)
        waiting = self._waiting.pop(path, None)
        if waiting is not None:
            waiting.cancel()
        self.project.forget(path)
        self.text_document_publish_diagnostics(types.PublishDiagnosticsParams(uri, []))

    def moved(self, uri: str) -> None:
        """A file that another program wrote, made or removed."""
        path = _path(uri)
        if path in self.opened:
            return
        if not Path(path).is_file():
            self.project.documents.pop(path, None)
        else:
            known = self.project.documents.get(path)
            if known is None:
                self.project.edit(path, "")
            self.project.forget(path)
        for other in sorted(self.opened):
            self._start(other)


def _shown(document: Document, span: Span) -> Span:
    """A finding about a whole file stands at its first line."""
    if span.start == span.end == 0:
        return Span(span.path, 0, len(document.source.line(1)))
    return span


def _path(uri: str) -> str:
    return str(Path(to_fs_path(uri) or uri).resolve())


def _location(place: Place) -> types.Location:
    document, one = place
    return types.Location(edits.uri(document.path), span_range(document.source, one.span))


# ---------------------------------------------------------------- requests


def server() -> Server:
    """The server with every feature, not yet started."""
    made = Server()
    _lifecycle(made)
    _reading(made)
    _writing(made)
    return made


def _lifecycle(made: Server) -> None:
    @made.feature(types.INITIALIZE)
    def initialize(ls: Server, params: types.InitializeParams) -> None:
        folders = params.workspace_folders or []
        uri = folders[0].uri if folders else params.root_uri
        ls.begin(Path(_path(uri)) if uri else Path.cwd())

    @made.feature(types.INITIALIZED)
    def initialized(ls: Server, params: types.InitializedParams) -> None:
        ls.learn()

    @made.feature(types.TEXT_DOCUMENT_DID_OPEN)
    async def opened(ls: Server, params: types.DidOpenTextDocumentParams) -> None:
        ls.changed(params.text_document.uri)

    @made.feature(types.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(ls: Server, params: types.DidChangeTextDocumentParams) -> None:
        ls.changed(params.text_document.uri)

    @made.feature(types.TEXT_DOCUMENT_DID_CLOSE)
    async def closed(ls: Server, params: types.DidCloseTextDocumentParams) -> None:
        ls.closed(params.text_document.uri)

    @made.feature(types.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    async def moved(ls: Server, params: types.DidChangeWatchedFilesParams) -> None:
        for change in params.changes:
            ls.moved(change.uri)


def _reading(made: Server) -> None:
    @made.feature(types.TEXT_DOCUMENT_HOVER)
    def hover(ls: Server, params: types.HoverParams) -> types.Hover | None:
        return ls.describer.hover(ls.document(params.text_document.uri), params.position)

    @made.feature(types.TEXT_DOCUMENT_DEFINITION)
    def definition(ls: Server, params: types.DefinitionParams) -> list[types.Location]:
        document = ls.document(params.text_document.uri)
        one = document.at(offset(document.source, params.position))
        if one is None:
            return []
        symbol = ls.project.settled(one.symbol)
        if symbol[0] == "structure" and symbol[2] is None:  # any of its versions is meant
            versions = ls.project.versions("structure", str(symbol[1]))
            places = [p for v in versions for p in ls.project.define((*symbol[:2], v))]
        else:
            places = ls.project.define(symbol)
        return [_location(place) for place in places]

    @made.feature(types.TEXT_DOCUMENT_REFERENCES)
    def references(ls: Server, params: types.ReferenceParams) -> list[types.Location]:
        document = ls.document(params.text_document.uri)
        one = document.at(offset(document.source, params.position))
        if one is None or one.symbol[0] == "op":
            return []
        places = ls.project.places(ls.project.settled(one.symbol))
        declared = params.context.include_declaration
        return [_location(place) for place in places if declared or not place[1].defines]

    @made.feature(types.TEXT_DOCUMENT_COMPLETION, types.CompletionOptions([" ", ".", ":", "{"]))
    def completion(ls: Server, params: types.CompletionParams) -> types.CompletionList:
        document = ls.document(params.text_document.uri)
        return types.CompletionList(False, completions(ls.project, document, params.position))

    @made.feature(types.TEXT_DOCUMENT_DOCUMENT_SYMBOL)
    def symbols(ls: Server, params: types.DocumentSymbolParams) -> list[types.DocumentSymbol]:
        return outlines.document_symbols(ls.document(params.text_document.uri))

    @made.feature(types.WORKSPACE_SYMBOL)
    def everywhere(ls: Server, params: types.WorkspaceSymbolParams) -> list[types.WorkspaceSymbol]:
        return outlines.workspace_symbols(ls.project, params.query)


def _writing(made: Server) -> None:
    @made.feature(types.TEXT_DOCUMENT_FORMATTING)
    def formatting(ls: Server, params: types.DocumentFormattingParams) -> list[types.TextEdit]:
        return edits.formatting(ls.document(params.text_document.uri))

    @made.feature(types.TEXT_DOCUMENT_RANGE_FORMATTING)
    def some(ls: Server, params: types.DocumentRangeFormattingParams) -> list[types.TextEdit]:
        return edits.range_formatting(ls.document(params.text_document.uri), params.range)

    @made.feature(types.TEXT_DOCUMENT_PREPARE_RENAME)
    def prepare(ls: Server, params: types.PrepareRenameParams) -> types.Range:
        document = ls.document(params.text_document.uri)
        try:
            one = edits.renameable(ls.project, document, params.position)
        except edits.Refused as refused:
            raise JsonRpcInvalidParams(str(refused)) from None
        return span_range(document.source, one.span)

    @made.feature(types.TEXT_DOCUMENT_RENAME, types.RenameOptions(prepare_provider=True))
    def rename(ls: Server, params: types.RenameParams) -> types.WorkspaceEdit:
        document = ls.document(params.text_document.uri)
        try:
            return edits.rename(ls.project, document, params.position, params.new_name)
        except edits.Refused as refused:
            raise JsonRpcInvalidParams(str(refused)) from None

    @made.feature(
        types.TEXT_DOCUMENT_CODE_ACTION,
        types.CodeActionOptions([types.CodeActionKind.QuickFix]),
    )
    def actions(ls: Server, params: types.CodeActionParams) -> list[types.CodeAction]:
        document = ls.document(params.text_document.uri)
        known = ls.found.get(document.path, [])
        return edits.fixes(document, known, params.range)


def serve() -> None:
    """Serves one editor over standard input and output until it ends the session."""
    sys.setswitchinterval(0.001)  # a request does not wait long for the thread that checks
    gc.set_threshold(100_000, 20, 20)
    server().start_io()
