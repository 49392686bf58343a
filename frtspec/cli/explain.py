"""``frtspec explain``: a page per code, whose failing example is run on the spot."""

from __future__ import annotations

import argparse
import contextlib
import io
import re
import sys
import tempfile
import textwrap
from pathlib import Path

from frtspec.cli.common import OK, USAGE
from frtspec.diag.codes import codes
from frtspec.diag.codes_types import Code, Example
from frtspec.diag.suggest import did_you_mean


def run(options: argparse.Namespace) -> int:
    """Prints the page of one code, or the list of all; exits 2 for an unknown code."""
    if options.code is None:
        sys.stdout.write(listing())
        return OK
    code = codes().get(_normal(options.code))
    if code is None:
        typed = options.code.strip().upper()
        near = did_you_mean(typed if typed.startswith("FRT") else _normal(typed), codes())
        near = near or "`frtspec explain` lists all codes"
        print(f"frtspec: no code `{options.code}`\n   help: {near}", file=sys.stderr)
        return USAGE
    sys.stdout.write(page(code))
    return OK


def listing() -> str:
    """Every code with its title, grouped by phase."""
    lines: list[str] = []
    phase = ""
    for code in codes().values():
        if code.phase != phase:
            phase = code.phase
            lines += ["", phase] if lines else [phase]
        lines.append(f"  {code.id}  {code.title}")
    return "".join(f"{line}\n" for line in lines)


def page(code: Code) -> str:
    """What the code means, an example that fails, what frtspec says of it, the fix."""
    example = code.project()
    _, output = run_example(example)
    parts = [
        f"{code.id}: {code.title}",
        _wrapped(code.summary),
        "Example",
        _indented(_shown(example)),
    ]
    parts += [
        f"`frtspec {' '.join(example.argv)}` says",
        _indented(output),
        "Fix",
        _wrapped(code.fix),
    ]
    mended = code.mended()
    if mended is not None:
        parts += ["Mended", _indented(_shown(mended))]
    return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def run_example(example: Example) -> tuple[int, str]:
    """Runs the example in an empty folder: (exit code, everything printed)."""
    from frtspec.cli.main import main

    printed = io.StringIO()
    with tempfile.TemporaryDirectory(prefix="frtspec-") as folder, contextlib.chdir(folder):
        _write(example.files)
        if example.prepare:
            with contextlib.redirect_stdout(io.StringIO()):
                main(example.prepare)
        _write(example.edits)
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main(example.argv)
    return code, printed.getvalue()


def _write(files: tuple[tuple[str, str | bytes | None], ...]) -> None:
    for name, contents in files:
        path = Path(name)
        if contents is None:
            path.mkdir(parents=True)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(contents.encode() if isinstance(contents, str) else contents)


def _shown(example: Example) -> str:
    """The files' texts, each under its name where there is more than one."""
    files = [(name, contents) for name, contents in example.files if contents is not None]
    if len(files) == 1 and isinstance(files[0][1], str) and not example.prepare:
        return files[0][1]
    blocks = [f"# {name}\n{_text(contents)}" for name, contents in files]
    if example.prepare:
        blocks.append(f"$ frtspec {' '.join(example.prepare)}")
    blocks += [f"# {name}, then edited\n{_text(contents)}" for name, contents in example.edits]
    return "\n\n".join(block.rstrip("\n") for block in blocks)


def _text(contents: str | bytes) -> str:
    return contents if isinstance(contents, str) else f"(bytes) {contents!r}"


def _normal(typed: str) -> str:
    digits = re.fullmatch(r"(?:frt)?-?0*(\d{1,4})", typed.strip().lower())
    return f"FRT{int(digits[1]):04}" if digits else typed.strip().upper()


def _indented(text: str) -> str:
    return "\n".join(f"    {line}".rstrip() for line in text.splitlines())


def _wrapped(text: str) -> str:
    parts = text.split("\n\n")
    return "\n\n".join(
        textwrap.fill(part, 88, break_long_words=False, break_on_hyphens=False) for part in parts
    )
