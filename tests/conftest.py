"""What all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest

from frtspec import resources
from frtspec.diag.source import SourceFile
from frtspec.syntax import parse as module
from frtspec.syntax.parse import ParseResult

if "OMP_NUM_THREADS" not in os.environ:
    # Tests compute on small tensors: threads that spin for each of them cost many times the work.
    # Inherited by the processes that tests start; read when torch is first imported.
    os.environ["OMP_NUM_THREADS"] = "1"
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


@pytest.fixture(scope="session", autouse=True)
def the_catalog_is_parsed_once() -> Iterator[None]:
    """Hundreds of tests run commands, and each command reads the whole catalog. Trees are
    frozen, so a process can keep those of files whose text has not changed."""
    known: dict[tuple[str, str], ParseResult] = {}
    real = module.parse
    catalog = resources.specs_dir().as_posix()

    def parse(source: SourceFile) -> ParseResult:
        key = (source.path, source.text)
        if key in known:
            return known[key]
        result = real(source)
        if catalog in source.path or source.path.startswith("specs/"):
            known[key] = result
        return result

    module.parse = parse
    yield
    module.parse = real
