"""What all tests share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

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


# How long an input takes to draw says how busy the machine is, nothing about a property.
settings.register_profile("busy", suppress_health_check=[HealthCheck.too_slow], deadline=None)
settings.load_profile("busy")

LONG = (
    "hosts/test_smollm2.py",
    "packaging/test_wheel.py",
    "codegen/test_determinism.py",
    "codegen/test_projects.py",
    "codegen/test_reads_well.py",
    "cli/test_closure.py",
    "live/test_scan_families.py",
    "sema/test_robust.py",
    "sema/test_planted.py",
    "syntax/test_planter.py",
    "packages/test_interpreted.py",
    "runtime/bind/test_numerics_formats.py",
    "diag/test_codes.py",
    "runtime/test_attach_small.py",
    "runtime/bind/test_compile.py",
)
"""Files of which each takes longer than half a minute or so, longest first."""


def pytest_configure(config: pytest.Config) -> None:
    """Two processes end together only where the longest files begin first, and xdist by itself
    begins with those of the most tests. The processes of a run share the bytecode of what they
    import: without any, each that imports transformers compiles for seconds."""
    if hasattr(config.option, "loadscopereorder"):
        config.option.loadscopereorder = False
    cache = getattr(config, "cache", None)
    if os.environ.get("PYTHONDONTWRITEBYTECODE") and cache is not None:
        del os.environ["PYTHONDONTWRITEBYTECODE"]
        os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = str(cache.mkdir("bytecode"))
        sys.dont_write_bytecode = False


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    place = {Path(__file__).parent / name: index for index, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


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
