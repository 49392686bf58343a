"""A client of the language server over real pipes, for tests and for the benchmark."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from lsprotocol import types
from pygls.lsp.client import LanguageClient


class Client(LanguageClient):
    """``published``: the last findings of each file, by URI."""

    def __init__(self) -> None:
        super().__init__("test", "1")
        self.published: dict[str, list[types.Diagnostic]] = {}
        self.counts: dict[str, int] = {}
        self.news = asyncio.Condition()
        self.texts: dict[str, str] = {}
        self.version = 0

        @self.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        async def publish(params: types.PublishDiagnosticsParams) -> None:
            async with self.news:
                self.published[params.uri] = list(params.diagnostics)
                self.counts[params.uri] = self.counts.get(params.uri, 0) + 1
                self.news.notify_all()

    async def request(self, method: str, params: Any) -> Any:
        return await self.protocol.send_request_async(method, params)

    async def open(self, path: Path, text: str | None = None) -> str:
        """Opens a file, with a text of its own, and waits for its findings."""
        uri = path.as_uri()
        self.texts[uri] = path.read_text("utf-8") if text is None else text
        before = self.counts.get(uri, 0)
        item = types.TextDocumentItem(uri, "frt", 1, self.texts[uri])
        self.text_document_did_open(types.DidOpenTextDocumentParams(item))
        await self.findings(uri, before)
        return uri

    def close(self, uri: str) -> None:
        document = types.TextDocumentIdentifier(uri)
        self.text_document_did_close(types.DidCloseTextDocumentParams(document))

    def type(self, uri: str, start: int, end: int, new: str) -> None:
        """Replaces a range of offsets, as a key does."""
        text = self.texts[uri]
        edit = types.TextDocumentContentChangePartial(
            types.Range(at(text, start), at(text, end)), new
        )
        self.version += 1
        document = types.VersionedTextDocumentIdentifier(self.version, uri)
        self.text_document_did_change(types.DidChangeTextDocumentParams(document, [edit]))
        self.texts[uri] = text[:start] + new + text[end:]

    async def write(self, uri: str, text: str) -> list[types.Diagnostic]:
        """Replaces the whole text and waits for the findings."""
        before = self.counts.get(uri, 0)
        self.type(uri, 0, len(self.texts[uri]), text)
        return await self.findings(uri, before)

    async def findings(self, uri: str, before: int) -> list[types.Diagnostic]:
        """The findings published after ``before`` others."""
        async with self.news:
            await asyncio.wait_for(self.news.wait_for(lambda: self.counts.get(uri, 0) > before), 30)
        return self.published[uri]

    async def at(self, method: str, uri: str, offset: int, **more: Any) -> Any:
        """A request about a place."""
        params = {
            types.TEXT_DOCUMENT_HOVER: types.HoverParams,
            types.TEXT_DOCUMENT_DEFINITION: types.DefinitionParams,
            types.TEXT_DOCUMENT_REFERENCES: types.ReferenceParams,
            types.TEXT_DOCUMENT_COMPLETION: types.CompletionParams,
            types.TEXT_DOCUMENT_PREPARE_RENAME: types.PrepareRenameParams,
            types.TEXT_DOCUMENT_RENAME: types.RenameParams,
        }[method]
        document = types.TextDocumentIdentifier(uri)
        place = at(self.texts[uri], offset)
        return await self.request(
            method,
            params(text_document=document, position=place, **more),  # type: ignore[operator]
        )


def at(text: str, offset: int) -> types.Position:
    """The position of an offset, in UTF-16 units."""
    line = text.count("\n", 0, offset)
    start = text.rfind("\n", 0, offset) + 1
    return types.Position(line, len(text[start:offset].encode("utf-16-le")) // 2)


def applied(text: str, edits: list[types.TextEdit]) -> str:
    """The text with edits applied, as an editor does."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)

    def offset(place: types.Position) -> int:
        units = lines[place.line].encode("utf-16-le")[: 2 * place.character]
        return starts[place.line] + len(units.decode("utf-16-le"))

    spans = [(offset(e.range.start), offset(e.range.end), e.new_text) for e in edits]
    for start, end, new in sorted(spans, reverse=True):
        text = text[:start] + new + text[end:]
    return text


@asynccontextmanager
async def client(folder: Path) -> AsyncIterator[Client]:
    """A client with a server of its own, begun in a project folder."""
    made = Client()
    await made.start_io(sys.executable, "-m", "frtspec", "lsp", "--stdio", cwd=folder)
    params = types.InitializeParams(
        types.ClientCapabilities(), process_id=None, root_uri=folder.as_uri()
    )
    try:
        await made.initialize_async(params)
        made.initialized(types.InitializedParams())
        yield made
        await made.shutdown_async(None)
        made.exit(None)
    finally:
        await made.stop()
