"""Sizes of synthetic cases: they satisfy the rules, and tell axes apart."""

from __future__ import annotations

from pathlib import Path

import pytest
from codegen_kit import catalog, hard_structure, program_of, written

from frtspec.codegen.casesizes import fitting_sizes
from frtspec.ir.decl import Structure

HEADS = """frt 1

structure heads version 1 {{
  dim M, Hq, Hkv, D, R
  in  x   [rows M, Hq * D] : host
  in  cos [rows M, R / 2] : host
  out y   [rows M, (Hq + 2 * Hkv) * D] : host
  slot w  [Hq * D, (Hq + 2 * Hkv) * D]
  reference {{
    let none = cos * 0
    let z = sum(none, axis = -1)
    yield y = x @ w + unsqueeze(z, -1)
  }}
  require {{ {rules} }}
}}
"""


def structure_with(rules: str) -> Structure:
    (structure,) = program_of(HEADS.format(rules=rules)).structures.values()
    return structure


@pytest.mark.parametrize(
    "rules",
    [
        "Hq % Hkv == 0",
        "Hq % Hkv == 0, 256 <= D <= 512, R <= D, R % 6 == 0",
        "D == 72, R == D / 2, Hq == 7, Hkv == 1",
        "D % 48 == 0, D >= 1024, Hq == 2 * Hkv, R == D",
        "Hq * D == 1536, R % 64 == 0",
    ],
)
def test_sizes_satisfy_the_rules(rules: str) -> None:
    structure = structure_with(rules)
    found = fitting_sizes(structure)
    assert found
    for sizes in found:
        assert all(rule.check(sizes) for rule in structure.requires), sizes
        shapes = [p.shape for p in (*structure.inputs, *structure.outputs)]
        every = [a.alternatives[0].value(sizes) for shape in shapes for a in shape]
        assert min(every) > 0


def test_rules_that_nothing_small_satisfies() -> None:
    """The package is generated all the same; its harness says that it has no cases."""
    structure = structure_with("D == 100003")
    assert fitting_sizes(structure) == []


def test_a_harness_without_cases(tmp_path: Path) -> None:
    written(program_of(HEADS.format(rules="D == 100003")), tmp_path, package="pkg")
    source = (tmp_path / "pkg" / "gates" / "heads_v1.py").read_text()
    assert "SIZES: tuple[dict[str, int], ...] = ()\n" in source
    assert "Found none that are small" in source


def test_axes_of_the_catalog_have_sizes_of_their_own() -> None:
    for structure in catalog().structures.values():
        for sizes in fitting_sizes(structure):
            assert len(set(sizes.values())) == len(sizes), (structure.name, sizes)


def test_hard_structures_have_sizes() -> None:
    for name in ("gated_delta_core", "adaln_producer"):
        assert len(fitting_sizes(hard_structure(name))) == 2
