"""How long the language server takes to answer, warm, on the whole catalog.

Every file of the catalog is opened in turn and asked about at places spread over it: each request is
sent over the pipe and its answer waited for. What changes a text is timed to its findings, the
quiet time that the server waits for taken off.

    python bench/lsp.py [--places 4]
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from lsprotocol import types

from frtspec.lsp.server import QUIET
from tests.lsp.client import Client, at, client

ROOT = Path(__file__).resolve().parent.parent
TARGET = 50.0
"""Milliseconds that 95 of 100 requests should stay under."""


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--places", type=int, default=4, help="places a file; default: 4")
    parser.add_argument("--step", type=int, default=1, help="every how many files; default: 1")
    options = parser.parse_args(argv)
    times = asyncio.run(_measured(options.places, options.step))
    print(f"{'request':28} {'median':>9} {'p95':>9} {'longest':>9} {'number':>7}")
    for name, taken in times.items():
        taken.sort()
        p95 = taken[min(len(taken) - 1, int(0.95 * len(taken)))]
        note = "" if name.startswith("findings") or p95 < TARGET else "  missed"
        print(
            f"{name:28} {statistics.median(taken):6.1f} ms {p95:6.1f} ms {taken[-1]:6.1f} ms "
            f"{len(taken):7}{note}"
        )


async def _measured(places: int, step: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = defaultdict(list)
    random.seed(1)
    files = sorted((ROOT / "specs").rglob("*.frt"))[::step]
    async with client(ROOT) as lsp:
        await lsp.request(types.WORKSPACE_SYMBOL, types.WorkspaceSymbolParams("warm"))
        for path in files:
            uri = await lsp.open(path)
            text = lsp.texts[uri]
            words = [n for n in range(1, len(text)) if text[n].isalpha() and text[n - 1] == " "]
            for offset in random.sample(words, min(places, len(words))):
                await _asked(lsp, uri, offset, times)
            await _whole(lsp, uri, times)
            await _typed(lsp, uri, times)
            lsp.close(uri)
    return dict(times)


async def _asked(lsp: Client, uri: str, offset: int, times: dict[str, list[float]]) -> None:
    requests = {
        types.TEXT_DOCUMENT_HOVER: {},
        types.TEXT_DOCUMENT_DEFINITION: {},
        types.TEXT_DOCUMENT_REFERENCES: {"context": types.ReferenceContext(True)},
        types.TEXT_DOCUMENT_COMPLETION: {},
        types.TEXT_DOCUMENT_RENAME: {"new_name": "another_name"},
    }
    for method, more in requests.items():
        begin = time.perf_counter()
        try:
            await lsp.at(method, uri, offset, **more)
        except Exception as error:
            if method != types.TEXT_DOCUMENT_RENAME:
                raise SystemExit(f"{method} of {uri}: {error}") from error
        times[method].append((time.perf_counter() - begin) * 1e3)


async def _whole(lsp: Client, uri: str, times: dict[str, list[float]]) -> None:
    document = types.TextDocumentIdentifier(uri)
    everything = types.Range(at("", 0), at(lsp.texts[uri], len(lsp.texts[uri])))
    requests = (
        (types.TEXT_DOCUMENT_DOCUMENT_SYMBOL, types.DocumentSymbolParams(document)),
        (types.WORKSPACE_SYMBOL, types.WorkspaceSymbolParams("ffn")),
        (
            types.TEXT_DOCUMENT_FORMATTING,
            types.DocumentFormattingParams(document, types.FormattingOptions(2, True)),
        ),
        (
            types.TEXT_DOCUMENT_CODE_ACTION,
            types.CodeActionParams(document, everything, types.CodeActionContext([])),
        ),
    )
    for method, params in requests:
        begin = time.perf_counter()
        await lsp.request(method, params)
        times[method].append((time.perf_counter() - begin) * 1e3)


async def _typed(lsp: Client, uri: str, times: dict[str, list[float]]) -> None:
    """A line is half written: completion at once, then the findings; then it goes again."""
    text = lsp.texts[uri]
    end = text.rstrip().rfind("}")
    for new in ("  slot w_", ""):
        old = len(lsp.texts[uri]) - len(text)
        before = lsp.counts[uri]
        begin = time.perf_counter()
        lsp.type(uri, end, end + old, new)
        if new:
            await lsp.at(types.TEXT_DOCUMENT_COMPLETION, uri, end + len(new))
            times["completion, half written"].append((time.perf_counter() - begin) * 1e3)
        await lsp.findings(uri, before)
        kind = "findings, half written" if new else "findings, whole again"
        times[kind].append((time.perf_counter() - begin - QUIET) * 1e3)


if __name__ == "__main__":
    main()
