"""Every imported binding goes back to flash-rt as a document its own validator takes."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from flash_rt.catalog.binding import list_bindings, load_binding, validate_binding

from frtspec.config import Config
from frtspec.importers.flashrt.convert import convert
from frtspec.importers.flashrt.export import export
from frtspec.ir.decl import Program
from frtspec.project import load, select
from importers import kit

NAMES = list_bindings()
DIFFERS = {
    (name, "variant"): {"activation": "gelu", "norm_affine": "learned"}
    for name in ("pi05_vision", "qwen3_vl_8b_vision", "smolvla_vision")
}
"""Fields that an export fills further than the source did."""


@cache
def program() -> Program:
    """The committed catalog, as every command loads it."""
    here = kit.COMMITTED.parents[2]
    config = Config(here, (here / "specs",), here / "generated", None)
    return load(select((), config, here)).program


@cache
def documents() -> dict[str, str]:
    made = export(program(), program().bindings.values(), named=False)
    assert made.diagnostics == ()
    return {name.removesuffix(".yaml"): text for name, text in made.files.items()}


def document(name: str) -> dict[str, Any]:
    held: dict[str, Any] = yaml.safe_load(documents()[name])
    return held


def test_all_and_only_the_imported_bindings_are_exported() -> None:
    assert sorted(documents()) == NAMES
    assert len(NAMES) == 27


@pytest.mark.parametrize("name", NAMES)
def test_the_validator_takes_it_and_finds_what_it_found(name: str) -> None:
    original = load_binding(name)
    made = validate_binding(
        document(name),
        expected_name=name,
        require_pipeline_coverage=original.coverage_declared,
    )
    assert made.manifest() == original.manifest()
    assert made.data.get("weights_map") == original.data.get("weights_map")


def test_twelve_pipelines_declare_their_coverage() -> None:
    assert sum(load_binding(name).coverage_declared for name in NAMES) == 12
    assert sum("coverage" in document(name) for name in NAMES) == 12


@pytest.mark.parametrize("name", NAMES)
def test_the_rest_of_the_document_is_the_same_too(name: str) -> None:
    original, made = dict(load_binding(name).data), document(name)
    for (binding, field), value in DIFFERS.items():
        if binding == name:
            assert made[field] == value != original[field]
            original[field] = value
    assert made == original


def test_what_was_exported_imports_to_the_same_specs(tmp_path: Path) -> None:
    """All but the citation of the source's bytes."""
    target = kit.copy(tmp_path)
    for name, text in documents().items():
        (target / "bindings" / f"{name}.yaml").write_text(text, "utf-8")
    again = convert(kit.read(target), kit.world())
    assert {n: _uncited(t) for n, t in again.files.items()} == {
        n: _uncited(t) for n, t in kit.imported().files.items()
    }


def _uncited(text: str) -> list[str]:
    return [row for row in text.splitlines() if not row.startswith("  evidence ")]
