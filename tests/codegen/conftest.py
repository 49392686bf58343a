"""What the tests of the generator share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from format_once import formatted_once


@pytest.fixture(scope="session")
def formatted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of formatted texts that all processes of this run share."""
    base = tmp_path_factory.getbasetemp()
    return (base.parent if base.name.startswith("popen-") else base) / "formatted"


@pytest.fixture(scope="session", autouse=True)
def a_text_is_formatted_once(formatted: Path) -> Iterator[None]:
    with formatted_once(formatted):
        yield
