"""A text is formatted once in a run of the tests, whichever process asks.

Several tests generate the whole catalog, and most of that time is black's. What it makes of a
text depends on nothing else; that the committed package is what a fresh run gives holds it to.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import black


@contextmanager
def formatted_once(folder: Path) -> Iterator[None]:
    """``black.format_str`` that keeps what it made in a folder."""
    folder.mkdir(exist_ok=True)
    real = black.format_str

    def format_str(src_contents: str, *, mode: black.Mode) -> str:
        key = hashlib.sha256(f"{mode.get_cache_key()}\n{src_contents}".encode()).hexdigest()
        kept = folder / key
        if kept.exists():
            return kept.read_text("utf-8")
        text = real(src_contents, mode=mode)
        whole = folder / f"{key}.{os.getpid()}"
        whole.write_text(text, "utf-8")
        whole.replace(kept)  # never half a text for another process
        return text

    black.format_str = format_str  # type: ignore[assignment]
    try:
        yield
    finally:
        black.format_str = real
