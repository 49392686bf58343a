"""``frtspec fmt``: one layout for every spec."""

from __future__ import annotations

import argparse
import sys

from frtspec.cli.common import (
    FINDINGS,
    OK,
    USAGE,
    begin,
    conclude,
    counted,
    exit_code,
    progress,
    refused,
    report,
)
from frtspec.diag.diagnostic import Diagnostic, in_order
from frtspec.diag.render import render
from frtspec.diag.source import SourceFile, Span
from frtspec.files import write_atomically
from frtspec.project import SpecFile, select, writable
from frtspec.syntax.fmt import FormatResult, format_source
from frtspec.syntax.fmt_range import format_lines
from frtspec.syntax.read import decode, read_source

STDIN = "-"


def run(options: argparse.Namespace) -> int:
    """Rewrites the files that are not in the one layout; with ``--check`` names them and
    exits 1. A file that does not parse is reported and left alone. ``-`` alone formats what
    comes from standard input to standard output."""
    if STDIN in options.paths:
        return _from_stdin(options)
    setup = begin()
    if not setup.ok:
        report(setup.diagnostics, setup.sources)
        return exit_code(setup.diagnostics)
    selection = select(options.paths, setup.config, setup.here)
    files = [file for file in selection.files if file.path in selection.asked]
    if options.range is not None and (len(options.paths) != 1 or len(files) > 1):
        return _usage("--range is about one file", "name the file")
    found = [*setup.diagnostics, *selection.diagnostics]
    sources = dict(setup.sources)
    changed = 0
    with progress() as say:
        for number, file in enumerate(files, start=1):
            say(f"formatting {number} of {len(files)} files")
            if not options.check and not writable(file, setup.config):
                found.append(_installed(file))
                continue
            changed += _format(file, options, found, sources)
    report(in_order(found), sources)
    if found:
        conclude(found, len(files))
    else:
        print(f"{counted(changed, 'file')} reformatted, {len(files) - changed} as they were")
    return exit_code(found)


def _format(
    file: SpecFile,
    options: argparse.Namespace,
    found: list[Diagnostic],
    sources: dict[str, SourceFile],
) -> bool:
    """Formats one file, or with ``--check`` finds out whether it would change."""
    source, problems = read_source(file.path)
    found += problems
    if source is None:
        return False
    sources[file.path] = source
    result = _formatted(source, options)
    found += result.diagnostics
    if result.text is None or result.text == source.text:
        return False
    if options.check:
        found.append(_unformatted(source, result.text))
        return False
    try:
        return write_atomically(file.real, result.text.encode())
    except OSError as error:
        found.append(refused(file.path, error))
        return False


def _formatted(source: SourceFile, options: argparse.Namespace) -> FormatResult:
    if options.range is None:
        return format_source(source)
    return format_lines(source, *options.range)


def _from_stdin(options: argparse.Namespace) -> int:
    """Formats standard input. Nothing is written where it has syntax errors: they go to
    standard error, since standard output is the text."""
    if options.paths != [STDIN]:
        return _usage("`-` stands alone", "format files in a run of their own")
    raw = sys.stdin.buffer.read()
    source, found = decode(options.stdin_name, raw)
    if source is None:
        sys.stderr.write(render(found, {}))
        return FINDINGS
    result = _formatted(source, options)
    if result.text is None:
        sys.stderr.write(render(result.diagnostics, {source.path: source}))
        return FINDINGS
    if not options.check:
        sys.stdout.write(result.text)
        return OK
    if result.text.encode() == raw:
        return OK
    report([_unformatted(source, result.text)], {source.path: source})
    return FINDINGS


def _usage(message: str, help: str) -> int:
    print(f"frtspec fmt: error: {message}\n   help: {help}", file=sys.stderr)
    return USAGE


def _unformatted(source: SourceFile, wanted: str) -> Diagnostic:
    """Placed at the first line that would change."""
    was, becomes = source.text.split("\n"), wanted.split("\n")
    pairs = enumerate(zip(was, becomes, strict=False))
    number = next((i for i, (a, b) in pairs if a != b), min(len(was), len(becomes)))
    line = was[number].rstrip("\r") if number < len(was) else ""
    start = source.line_starts[min(number, len(source.line_starts) - 1)]
    indent = len(line) - len(line.lstrip())
    new = becomes[number].strip() if number < len(becomes) else ""
    return Diagnostic(
        "FRT0870",
        "not in the layout that `frtspec fmt` writes",
        Span(source.path, start + indent, start + len(line)),
        notes=((None, f"this line becomes `{new}`" if new else "this line goes away"),),
        help="run `frtspec fmt`",
    )


def _installed(file: SpecFile) -> Diagnostic:
    return Diagnostic(
        "FRT0859",
        "this file belongs to the installed catalog, which is not written",
        Span(file.path, 0, 0),
        help="copy it to the same place in your spec root; it then stands in for the catalog's",
    )
