"""What a spec tells about itself stands in the docstring of what is generated from it."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from codegen_kit import COPY, ROOT, catalog, program_of, written

from frtspec.codegen.pysrc import WIDTH, doc_lines, natural, text_literal
from frtspec.codegen.pysrc import docstring as paragraph
from frtspec.codegen.structview import structure_view

EVIDENCE = '''evidence """
  Measured on three hosts:
    41.5 ms before, "12.25" ms after.
  """'''
PLACES = {"structures/norm_v1.py", "impls/norm_plain.py", "schemes/plain.py", "towers/__init__.py"}


def host_package(folder: Path, evidence: str) -> dict[str, str]:
    """The modules of the golden host, where every declaration gives evidence."""
    text = (ROOT / "tests" / "codegen" / "golden" / "host" / "spec.frt").read_text("utf-8")
    for head in ("impl plain for norm version 1 {", "scheme plain {"):
        text = text.replace(head, f"{head}\n  {evidence}")
    for doc in ('"""A norm with an optional bias."""', 'and a norm behind."""'):
        text = text.replace(doc, f"{doc}\n  {evidence}")
    program = program_of(text)
    written(program, folder, package="made_told")
    return {place: (folder / "made_told" / place).read_text("utf-8") for place in PLACES}


def docstring(source: str) -> str:
    return ast.get_docstring(ast.parse(source)) or ""


@pytest.mark.parametrize("place", sorted(PLACES))
def test_evidence_is_told(tmp_path: Path, place: str) -> None:
    told = docstring(host_package(tmp_path, EVIDENCE)[place])
    assert 'Evidence:\nMeasured on three hosts:\n  41.5 ms before, "12.25" ms after.' in told


def test_each_evidence_is_told_and_none_of_them_is_in_the_contract() -> None:
    twice = COPY.replace("dim M, D", 'dim M, D\n  evidence """one"""\n  evidence """two"""')
    (plain,) = program_of(COPY).structures.values()
    (told,) = program_of(twice).structures.values()
    assert told.evidence == ("one", "two")
    assert told.origin.contract_digest == plain.origin.contract_digest


@pytest.mark.parametrize("place", sorted(PLACES))
def test_no_docstring_leaves_no_hole(tmp_path: Path, place: str) -> None:
    source = host_package(tmp_path, "")[place]
    assert "\n\n\n" not in docstring(source)


def test_a_structure_without_a_docstring_leaves_no_hole(tmp_path: Path) -> None:
    written(program_of(COPY), tmp_path, package="made_plain")
    told = docstring((tmp_path / "made_plain/structures/copy_v1.py").read_text("utf-8"))
    assert told.startswith("copy, version 1.\n\n    inputs   x [M, D]\n")


def test_gates_and_dtypes_are_told(tmp_path: Path) -> None:
    text = COPY.replace("  reference", "  in  s [M] : f32\n  out z [M] : f32\n  reference")
    text = text.replace("    yield", "    yield z = s\n    yield").rstrip().removesuffix("}")
    text += """  gate boundary on real_distribution { cosine >= 0.9990, max_abs }
      gate latency per shape { net_positive including boundary, against (torch_compile, vendor) }
    }
    """
    written(program_of(text), tmp_path, package="made_gated")
    told = docstring((tmp_path / "made_gated/structures/copy_v1.py").read_text("utf-8"))
    for line in (
        "    inputs   x [M, D], s [M] f32",
        "    outputs  y [M, D], z [M] f32",
        "    gate     boundary on real_distribution: cosine >= 0.9990, max_abs",
        "    gate     latency per shape: net_positive including boundary, against torch_compile,",
    ):
        assert line in told


@pytest.mark.parametrize(
    "words", [" on real_distribution", "per shape ", " including boundary", "net_positive, "]
)
def test_no_word_of_a_gate_is_ignored(words: str) -> None:
    """Leaving it out changes what is generated."""
    text = COPY.rstrip().removesuffix("}") + (
        "  gate boundary on real_distribution { cosine >= 0.9 }\n"
        "  gate latency per shape { net_positive including boundary, against (vendor) }\n}\n"
    )
    if "net_positive" in words:
        text = text.replace(" including boundary", "")
    assert words in text
    both = (program_of(t).structures.values() for t in (text, text.replace(words, "")))
    (whole,), (less,) = both
    assert structure_view(whole).summary != structure_view(less).summary


def test_parts_are_told() -> None:
    structure = catalog().structures["modnorm_qkv_chain", 3]
    part = structure.parts[0]
    called = f"{part.name} ({', '.join(part.params)}) -> {', '.join(part.results)}"
    assert any(f"parts    {called}" in line for line in structure_view(structure).summary)


def test_long_lines_of_a_spec_are_broken_and_short_ones_kept() -> None:
    long = "  " + "word " * 40
    lines = doc_lines(f"one\n\n  two\n{long}")
    assert lines[:3] == ["one", "", "  two"]
    assert len(lines) > 4 and all(len(line) <= WIDTH for line in lines)
    assert all(line.startswith("  word") for line in lines[3:])


def test_a_shape_stays_with_its_name() -> None:
    shapes = ", ".join(f"value_{k} [B, T, H{k}, D]" for k in range(9))
    lines = paragraph(f"What it takes: {shapes}.", depth=2)
    assert len(lines) > 2 and all(len(line) <= WIDTH - 8 - 6 for line in lines)
    assert all(line.count("[") == line.count("]") for line in lines)
    assert " ".join(lines) == f"What it takes: {shapes}."


@pytest.mark.parametrize("length", [40, 78, 79, 95, 200])
def test_a_sentence_is_in_one_piece_where_there_is_room(length: int) -> None:
    text = ("word " * 40)[:length]
    literal = text_literal(text, room=78)
    assert ast.literal_eval(literal) == text
    assert literal.startswith("(") == (length > 78)


def test_numbers_in_names_sort_by_size() -> None:
    names = ["w4a16", "w4a4", "fp8_static", "none", "w16", "w4"]
    assert sorted(names, key=natural) == ["fp8_static", "none", "w4", "w4a4", "w4a16", "w16"]
