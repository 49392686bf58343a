"""docs/diff.md typed as it stands: each command gives what the page shows.

python -m tests.docs.test_diff    writes what the commands print into the page
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.docs.fences import Fence, fences

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/diff.md"
PLACES = ("specs/structures/decoder_ffn/v1.frt", "specs/mine.frt")
_EXIT = re.compile(r"  # exit (\d)$")


def begun(folder: Path, page: list[Fence]) -> None:
    """The project of the page, and `frtspec` as a command."""
    (folder / "pyproject.toml").write_text(
        '[tool.frtspec]\nspecs = ["specs"]\npackage = "my_kernels"\n'
    )
    texts = [fence.text for fence in page if fence.language == "frt"]
    for place, text in zip(PLACES, texts, strict=True):
        path = folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    command = folder.parent / "bin/frtspec"  # outside: the hash of the commit is on the page
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m frtspec "$@"\n')
    command.chmod(0o755)


def ran(folder: Path, line: str) -> str:
    """What one command prints; its exit code has to be the one the page says."""
    wanted = int(found[1]) if (found := _EXIT.search(line)) else 0
    done = subprocess.run(
        ["bash", "-c", _EXIT.sub("", line)],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{folder.parent}/bin{os.pathsep}{os.environ['PATH']}",
            "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z",
            "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "generated"))),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == wanted, f"{line}\n{done.stdout}{done.stderr}"
    return done.stdout


def played(folder: Path, page: list[Fence]) -> list[tuple[Fence, str]]:
    """Each console block with what it should hold; TOML blocks become accept.toml."""
    folder.mkdir()
    begun(folder, page)
    out = []
    for fence in page:
        if fence.language == "toml":
            (folder / "specs/accept.toml").write_text(fence.text)
        if fence.language != "console":
            continue
        text = ""
        for line in fence.text.splitlines():
            if line.startswith("$ "):
                text += f"{line}\n" + ran(folder, line.removeprefix("$ "))
        out.append((fence, text))
    return out


def test_every_command_prints_what_the_page_shows(tmp_path: Path) -> None:
    for fence, text in played(tmp_path / "project", fences(PAGE)):
        assert fence.text == text, f"line {fence.line}: run `python -m tests.docs.test_diff`"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as name:
        page = PAGE.read_text(encoding="utf-8")
        for fence, text in played(Path(name) / "project", fences(PAGE)):
            page = page.replace(f"```console\n{fence.text}```", f"```console\n{text}```", 1)
    PAGE.write_text(page, encoding="utf-8")
