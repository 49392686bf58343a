"""``golden(name, text)``: compares with tests/diag/golden/<name>; rewritten where the
environment sets FRTSPEC_UPDATE_GOLDEN=1."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def golden() -> Callable[[str, str], None]:
    def compare(name: str, text: str) -> None:
        path = GOLDEN / name
        if os.environ.get("FRTSPEC_UPDATE_GOLDEN") == "1":
            path.write_bytes(text.encode())
        assert text == path.read_bytes().decode()

    return compare
