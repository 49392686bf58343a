"""The pages of the catalog: current, whole, drawn without overlaps."""

from __future__ import annotations

import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from frtspec import resources
from frtspec.cli.main import main
from frtspec.config import load_config
from frtspec.docgen import maths
from frtspec.docgen.costs import read_sizes
from frtspec.docgen.flow import flow
from frtspec.docgen.layers import GAP, place
from frtspec.docgen.pages import FOLDER, OVERVIEW, Catalog, pages
from frtspec.docgen.stages import stage_flow
from frtspec.project import load, select

ROOT = Path(__file__).parents[2]
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    loaded = load(select((), load_config(ROOT).config, ROOT))
    assert loaded.ok
    return Catalog(loaded.program, loaded.sources, read_sizes(resources.specs_dir() / "sizes.toml"))


@pytest.fixture(scope="module")
def made(catalog: Catalog) -> dict[str, str]:
    return pages(catalog)


def test_the_committed_pages_are_current(made: dict[str, str]) -> None:
    assert {p: (ROOT / "docs" / p).read_text("utf-8") for p in made} == made
    committed = {f"{FOLDER}/{p.name}" for p in (ROOT / "docs" / FOLDER).iterdir()}
    assert committed | {OVERVIEW} == set(made)


def test_every_declaration_has_its_place(catalog: Catalog, made: dict[str, str]) -> None:
    program = catalog.program
    for name in (*program.schemes, *program.bindings):
        assert f"| `{name}` |" in made[OVERVIEW]
    for (name, version), structure in program.structures.items():
        page = made[f"{FOLDER}/{name}_v{version}.md"]
        items = [*structure.inputs, *structure.outputs, *structure.slots, *structure.points]
        assert all(f"`{item.name}" in page for item in items)
        assert all(f"`{variant.name}`" in page for variant in structure.variants)
        assert all(f"`{seam.name}`" in page for seam in structure.seams)
        bound = [
            binding.name
            for binding in program.bindings.values()
            for group in binding.groups
            for seat in group.seats
            if seat.structure == (name, version)
        ]
        assert all(f"| `{binding}` |" in page for binding in bound)


def test_every_size_is_of_a_structure(catalog: Catalog) -> None:
    names = {name for name, _ in catalog.program.structures}
    assert {size.structure for size in catalog.sizes} <= names


# ---------------------------------------------------------------- pictures


def boxes(picture: str) -> list[tuple[float, float, float, float]]:
    tree = ET.fromstring(picture)
    found = []
    for group in tree.iter(f"{SVG}g"):
        rect = group.find(f"{SVG}rect")
        if rect is not None:
            x, y, w, h = (float(rect.attrib[key]) for key in ("x", "y", "width", "height"))
            found.append((x, y, x + w, y + h))
    return found


def test_boxes_do_not_overlap_and_lie_in_the_picture(made: dict[str, str]) -> None:
    pictures = {path: text for path, text in made.items() if path.endswith(".svg")}
    assert pictures
    for path, text in pictures.items():
        tree = ET.fromstring(text)
        width, height = (float(tree.attrib[key]) for key in ("width", "height"))
        found = boxes(text)
        assert found, path
        for box in found:
            assert 0 <= box[0] < box[2] <= width and 0 <= box[1] < box[3] <= height, path
        for i, (a, b, c, d) in enumerate(found):
            for e, f, g, h in found[i + 1 :]:
                assert c <= e or g <= a or d <= f or h <= b, path


def test_every_value_reaches_an_output(catalog: Catalog) -> None:
    for structure in catalog.program.structures.values():
        graph = flow(structure, catalog.sources)
        alive = {node.key for node in graph.nodes if node.kind == "output"}
        for node in reversed(graph.nodes):
            if any(e.source == node.key and e.target in alive for e in graph.edges):
                alive.add(node.key)
        dead = [n.title for n in graph.nodes if n.key not in alive]
        assert dead == [], structure.name


def test_a_pipeline_points_downwards(catalog: Catalog, made: dict[str, str]) -> None:
    for (name, version), pipeline in catalog.program.pipelines.items():
        graph = stage_flow(pipeline)
        assert all(edge.source < edge.target for edge in graph.edges)
        titles = {node.title for node in graph.nodes}
        values = [*pipeline.windows, *pipeline.buffers]
        assert {v.name for v in values} | {s.name for s in pipeline.stages} <= titles
        page = made[f"{FOLDER}/{name}_v{version}.md"]
        declared = [*values, *pipeline.states, *pipeline.stages, *pipeline.loops]
        declared += [*pipeline.conform, *pipeline.substructures]
        assert all(f"`{item.name}`" in page for item in declared)


def test_a_picture_speaks_for_itself(made: dict[str, str]) -> None:
    for path, text in made.items():
        if path.endswith(".svg"):
            tree = ET.fromstring(text)
            assert tree.attrib["role"] == "img" and tree.attrib["aria-label"]
            assert tree.find(f"{SVG}title") is not None and tree.find(f"{SVG}desc") is not None
            assert "http" not in text.replace("http://www.w3.org/2000/svg", "")


@st.composite
def graphs(draw: st.DrawFn) -> tuple[dict[int, float], list[tuple[int, int]]]:
    size = draw(st.integers(1, 12))
    widths = {key: draw(st.floats(5, 300)) for key in range(size)}
    pairs = [(a, b) for a in range(size) for b in range(a + 1, size)]
    edges = draw(st.lists(st.sampled_from(pairs), max_size=20)) if pairs else []
    return widths, edges


@settings(deadline=None)
@given(graphs())
def test_a_placing_keeps_order_and_gaps(
    graph: tuple[dict[int, float], list[tuple[int, int]]],
) -> None:
    widths, edges = graph
    placed = place(widths, edges)
    assert all(placed.row[a] < placed.row[b] for a, b in edges)
    for row in set(placed.row.values()):
        there = sorted((placed.x[k], k) for k in widths if placed.row[k] == row)
        for (left, a), (right, b) in pairwise(there):
            assert right - left >= (widths[a] + widths[b]) / 2 + GAP - 1e-6
    assert all(0 <= placed.x[k] - w / 2 + 1e-6 for k, w in widths.items())
    assert all(placed.x[k] + w / 2 <= placed.width + 1e-6 for k, w in widths.items())
    for (a, b), route in placed.routes.items():
        assert [row for _, row in route] == list(range(placed.row[a], placed.row[b] + 1))


# ---------------------------------------------------------------- formulas


def test_formulas_are_balanced(catalog: Catalog) -> None:
    for structure in catalog.program.structures.values():
        text = maths.formulas(structure.reference)
        bare = re.sub(r"\\[{}]", "", text)
        assert bare.count("{") == bare.count("}")
        assert text.count(r"\left(") == text.count(r"\right)")
        assert text.count(r"\begin{") == text.count(r"\end{")
        assert "?" not in text


def test_the_formula_of_the_feed_forward_block(catalog: Catalog) -> None:
    rows = maths.formulas(catalog.program.structures["decoder_ffn", 1].reference).splitlines()
    assert r"g &= x_{\text{after norm}} \, w_{\text{gate}} \\" in rows
    assert any(r"1 + \mathrm{f32}(w_{\text{norm}}) & \text{offset}" in row for row in rows)
    assert any(r"\text{norm\_rounding is before\_weight}" in row for row in rows)


# ---------------------------------------------------------------- the command


def test_docs_of_a_project_are_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text('[tool.frtspec]\npackage = "mine"\n')
    (tmp_path / "specs").mkdir()
    text = (resources.specs_dir() / "structures/qkv_rope/v1.frt").read_text("utf-8")
    own = tmp_path / "specs/mine.frt"
    own.write_text(text.replace("structure qkv_rope", "structure mine"))
    assert main(["docs"]) == 0
    names = sorted(
        p.relative_to(tmp_path / "docs").as_posix() for p in (tmp_path / "docs").rglob("*.*")
    )
    assert names == ["catalog.md", "catalog/mine_v1.md", "catalog/mine_v1.svg"]
    assert main(["docs", "--check"]) == 0
    own.write_text(own.read_text().replace("D <= 256", "D <= 128"))
    capsys.readouterr()
    assert main(["docs", "--check"]) == 1
    assert "docs/catalog/mine_v1.md: not what the specs give now" in capsys.readouterr().out
    own.write_text(own.read_text().replace("structure mine", "structure yours"))
    assert main(["docs"]) == 0
    assert "docs/catalog/mine_v1.md: no spec gives this page any more" in capsys.readouterr().out


def test_docs_in_any_hash_order(tmp_path: Path) -> None:
    texts = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        subprocess.run(
            [sys.executable, "-m", "frtspec", "docs", "--out", str(out)],
            cwd=ROOT,
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            check=True,
            capture_output=True,
        )
        texts.append({p.relative_to(out): p.read_bytes() for p in out.rglob("*.*")})
    assert texts[0] == texts[1]
