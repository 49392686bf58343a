"""What the subcommands share: settings of the run, printing, progress."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from frtspec.config import Config, load_config
from frtspec.diag.diagnostic import Diagnostic, has_errors
from frtspec.diag.render import Format, render
from frtspec.diag.source import SourceFile, Span

if TYPE_CHECKING:
    from rich.status import Status

OK, FINDINGS, USAGE, FAULT = 0, 1, 2, 3
"""Exit codes."""

_USAGE_CODES = frozenset({"FRT0856", "FRT0859", "FRT0880", "FRT0920"})

PATIENCE = 1.0
"""Seconds before progress is shown."""


@dataclass(frozen=True)
class Run:
    """Where a command runs and under which configuration."""

    here: Path
    config: Config
    sources: Mapping[str, SourceFile]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        return not has_errors(self.diagnostics)


def begin() -> Run:
    """Reads the configuration that holds in the current folder."""
    try:
        here = Path.cwd()
    except FileNotFoundError:
        print("frtspec: error: the current folder is gone", file=sys.stderr)
        raise SystemExit(USAGE) from None
    result = load_config(here)
    sources = {result.source.path: result.source} if result.source else {}
    return Run(here, result.config, sources, result.diagnostics)


def report(
    diagnostics: Iterable[Diagnostic],
    sources: Mapping[str, SourceFile],
    format: Format = "text",
) -> None:
    """Prints the diagnostics to stdout."""
    sys.stdout.write(render(diagnostics, sources, format, color=_colours(sys.stdout)))


def exit_code(diagnostics: Iterable[Diagnostic]) -> int:
    """2 when a path of the command line means nothing, 1 for any other error, else 0."""
    found = tuple(diagnostics)
    if any(d.code in _USAGE_CODES for d in found):
        return USAGE
    return FINDINGS if has_errors(found) else OK


def conclude(diagnostics: Iterable[Diagnostic], files: int) -> None:
    """Prints the closing line: ``2 errors, 1 warning in 3 files``."""
    found = list(diagnostics)
    parts = [
        counted(number, severity)
        for severity in ("error", "warning")
        if (number := sum(d.severity == severity for d in found))
    ]
    if parts:
        print(f"\n{', '.join(parts)} in {counted(files, 'file')}")
    else:
        print(f"{counted(files, 'file')}: no findings")


def counted(number: int, noun: str) -> str:
    """``1 file``, ``2 files``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _colours(stream: object) -> bool:
    isatty = getattr(stream, "isatty", None)
    if isatty is None or not isatty():
        return False
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def refused(path: str, error: OSError) -> Diagnostic:
    """The operating system would not read or write a file."""
    reason = error.strerror or str(error)
    return Diagnostic(
        "FRT0863",
        f"the system refused this file: {reason[:1].lower()}{reason[1:]}",
        Span(path, 0, 0),
        help="check what stands at this path, and its permissions",
    )


class Progress:
    """A line on stderr that says what is being done; silent where stderr is no terminal,
    and for the first second."""

    def __init__(self) -> None:
        self._text = ""
        self._status: Status | None = None
        self._lock = threading.Lock()

    def __call__(self, text: str) -> None:
        with self._lock:
            self._text = text
            if self._status is not None:
                self._status.update(text)

    def show(self) -> None:
        """Starts showing; called by the timer, from its own thread."""
        from rich.console import Console  # only for a run that takes long

        with self._lock:
            self._status = Console(stderr=True).status(self._text)
            self._status.start()

    def stop(self) -> None:
        with self._lock:
            if self._status is not None:
                self._status.stop()


@contextmanager
def progress() -> Iterator[Progress]:
    """A ``Progress`` that appears when the body takes longer than ``PATIENCE``."""
    shown = Progress()
    if not sys.stderr.isatty():
        yield shown
        return
    timer = threading.Timer(PATIENCE, shown.show)
    timer.daemon = True
    timer.start()
    try:
        yield shown
    finally:
        timer.cancel()
        timer.join()
        shown.stop()
