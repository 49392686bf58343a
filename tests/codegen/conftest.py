"""What the tests of the generator share."""

from __future__ import annotations

from collections.abc import Iterator

import black
import pytest


@pytest.fixture(scope="session", autouse=True)
def a_text_is_formatted_once() -> Iterator[None]:
    """Several tests generate the whole catalog, and most of that time is black's. What it makes
    of a text depends on nothing else, which ``test_determinism`` holds it to in processes of
    their own."""
    known: dict[tuple[str, str], str] = {}
    real = black.format_str

    def format_str(src_contents: str, *, mode: black.Mode) -> str:
        key = (src_contents, repr(mode))
        if key not in known:
            known[key] = real(src_contents, mode=mode)
        return known[key]

    black.format_str = format_str  # type: ignore[assignment]
    yield
    black.format_str = real
