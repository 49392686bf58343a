"""The catalog is right; the hardest specs lack generators and nothing else."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from frtspec.checks import illegal
from frtspec.diag.source import SourceFile
from frtspec.ir.decl import Program, Structure
from frtspec.sema import analyse
from frtspec.sema.combos import combos
from frtspec.sema.typing import infer
from frtspec.syntax.parse import parse

ROOT = Path(__file__).parents[2]
CATALOG = sorted((ROOT / "specs").rglob("*.frt"))
HARD = sorted((ROOT / "tests" / "specs" / "hard").glob("*.frt"))


def analysed(paths: list[Path]) -> tuple[Program, list[str]]:
    files = []
    for path in paths:
        source = SourceFile.from_text(path.name, path.read_text("utf-8"))
        files.append((source, parse(source).file))
    analysis = analyse(files)
    return analysis.program, [f"{d.span.path}: {d.code} {d.message}" for d in analysis.diagnostics]


@pytest.fixture(scope="module")
def catalog() -> Program:
    program, found = analysed(CATALOG)
    assert found == []
    return program


def test_the_catalog_is_whole(catalog: Program) -> None:
    assert ("decoder_ffn", 1) in catalog.structures
    assert ("decoder_ffn", 1, "mlp", "fp8_static") in catalog.impls
    assert catalog.auto is not None and catalog.auto.rows[-1][0] is None
    assert {"llama", "qwen3", "gemma3", "siglip"} <= catalog.bindings.keys()


def test_the_mlp_seam_of_decoder_ffn(catalog: Program) -> None:
    seam = catalog.structures["decoder_ffn", 1].seam("mlp")
    assert seam.slots == ("w_gate", "w_up", "w_down")
    assert seam.points == ("x_after_norm", "act_after_mul")
    assert seam.variants == ("activation",)
    assert seam.params == ()
    assert [s.name for s in seam.body if hasattr(s, "name")] == ["g", "u", "act_after_mul", "o"]


def test_combinations_count_what_may_be_given(catalog: Program) -> None:
    structure = catalog.structures["decoder_ffn", 1]
    # 8 for the three plain axes, times 1 without conditioning and 8 with (three inputs)
    assert len(combos(structure)) == 8 * (1 + 8)
    linear = catalog.structures["linear_proj", 1]
    assert len(combos(linear)) == 2 * 3  # bias and residual are there exactly when asked for


def structures(program: Program) -> list[Structure]:
    return list(program.structures.values())


def test_every_combination_types(catalog: Program) -> None:
    for structure in structures(catalog):
        for combo in combos(structure):
            typing = infer(structure, combo)
            assert typing.problems == ()


def test_the_program_keeps_its_promises(catalog: Program) -> None:
    assert illegal(catalog) == ()


def test_a_broken_promise_is_named(catalog: Program) -> None:
    structure = catalog.structures["decoder_ffn", 1]
    gone = replace(catalog, structures={}, impls={})
    assert any("every seat is of a structure" in line for line in illegal(gone))
    bare = replace(structure, reference=(), slots=(), seams=())
    found = illegal(replace(catalog, structures={("decoder_ffn", 1): bare}))
    assert any("every output is yielded: y" in line for line in found)
    assert any("packs and scales are of its target" in line for line in found)


def test_only_an_imported_binding_may_leave_a_variant_open(catalog: Program) -> None:
    llama = catalog.bindings["llama"]
    first, *rest = llama.groups
    seats = tuple(replace(seat, variants=()) for seat in first.seats)
    vague = replace(llama, groups=(replace(first, seats=seats), *rest))
    found = illegal(replace(catalog, bindings={"llama": vague}))
    assert any("leaves a variant open" in line for line in found)
    imported = replace(vague, status=replace(vague.status, name="imported", reason="not verified"))
    assert illegal(replace(catalog, bindings={"llama": imported})) == ()


def test_digests_are_filled_in(catalog: Program) -> None:
    for declaration in (*catalog.structures.values(), *catalog.bindings.values()):
        assert len(declaration.origin.contract_digest) == 64


def test_a_pipeline_of_three_implementations_is_right() -> None:
    hard = next(path for path in HARD if path.stem == "groot_n17_pipeline")
    needed = [path for path in CATALOG if {"structures", "impls"} & set(path.parts)]
    program, found = analysed([hard, *needed])
    assert found == []
    (use,) = program.bindings["groot_n17_pipeline"].pipelines
    assert use.coverage is not None and len(use.coverage.segments) == 14


def test_the_hardest_are_right() -> None:
    inner = ROOT / "specs" / "structures" / "vision_ffn" / "v2.frt"
    _, found = analysed([inner, *(path for path in HARD if path.stem != "groot_n17_pipeline")])
    assert found == []
