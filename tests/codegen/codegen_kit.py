"""Helpers of the generator's tests: from spec text to generated, imported modules."""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from frtspec.codegen import GenReport, generate
from frtspec.codegen.homes import Homes
from frtspec.codegen.pyfmt import format_python
from frtspec.codegen.render import render
from frtspec.codegen.structview import structure_view
from frtspec.diag.source import SourceFile
from frtspec.ir.decl import Program, Structure
from frtspec.sema import analyse
from frtspec.sema.context import Context
from frtspec.sema.structure import build_structure
from frtspec.sema.target import Built
from frtspec.syntax import ast
from frtspec.syntax.parse import parse

ROOT = Path(__file__).parents[2]
SPECS = ROOT / "specs"
HARD = ROOT / "tests" / "specs" / "hard"


def program_of(*texts: str, **named: str) -> Program:
    """The program of some spec texts; ``named`` gives them a file name (``a__b`` is a/b)."""
    files = {f"spec{number}.frt": text for number, text in enumerate(texts)}
    files |= {name.replace("__", "/") + ".frt": text for name, text in named.items()}
    parsed = []
    for name, text in files.items():
        source = SourceFile.from_text(name, text)
        result = parse(source)
        assert result.diagnostics == (), [str(d) for d in result.diagnostics]
        parsed.append((source, result.file))
    analysis = analyse(parsed)
    assert analysis.diagnostics == (), [str(d) for d in analysis.diagnostics]
    return analysis.program


@cache
def catalog() -> Program:
    """The program of the catalog, each file under its place in the spec root."""
    parsed = []
    for path in sorted(SPECS.rglob("*.frt")):
        text = path.read_text("utf-8")
        source = SourceFile.from_text(path.relative_to(SPECS).as_posix(), text)
        parsed.append((source, parse(source).file))
    return analyse(parsed).program


def hard_structure(name: str) -> Structure:
    """A structure of the hard specs."""
    source = SourceFile.from_text(f"{name}.frt", (HARD / f"{name}.frt").read_text("utf-8"))
    for decl in parse(source).file.decls:
        if isinstance(decl, ast.StructureDecl) and decl.name.id == name:
            context = Context(name)
            known: dict[str, dict[int, Built]] = {}
            for (inner, version), whole in catalog().structures.items():
                built = Built(whole, frozenset(), False, True)
                known.setdefault(inner, {})[version] = built
            structure = build_structure(source, decl, context, known)
            assert context.finish() == []
            return structure
    raise LookupError(name)


def structure_source(structure: Structure) -> str:
    """The formatted module of one structure; what stands in its slots is the catalog's."""
    homes = Homes(catalog(), "flashrt_gen", None)
    raw = render("structure.py.j2", structure_view(structure, homes))
    return format_python(raw, structure.name)


def module_of(source: str, name: str) -> ModuleType:
    """A module made of generated source."""
    module = ModuleType(name)
    sys.modules[name] = module
    exec(compile(source, f"{name}.py", "exec"), module.__dict__)  # noqa: S102
    return module


def structure_module(text: str, name: str = "") -> ModuleType:
    """The generated module of the one structure in a spec text."""
    (structure,) = program_of(text).structures.values()
    return module_of(structure_source(structure), name or f"generated_{structure.name}")


def written(program: Program, out: Path, **options: object) -> GenReport:
    """Generate, and expect that nothing stands against it."""
    report = generate(program, out, **options)  # type: ignore[arg-type]
    assert report.diagnostics == (), [str(d) for d in report.diagnostics]
    return report


@contextlib.contextmanager
def importable(folder: Path, package: str) -> Iterator[None]:
    """A generated package on the import path, forgotten afterwards. It leaves no bytecode: what a
    test writes next has the same second and may have the same size."""
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    kept = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        yield
    finally:
        sys.dont_write_bytecode = kept
        sys.path.remove(str(folder))
        for name in [n for n in sys.modules if n == package or n.startswith(f"{package}.")]:
            del sys.modules[name]


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes, byte code left out."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }


COPY = """frt 1

structure copy version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  reference {
    point x_in = x
    yield y = x_in
  }
}
"""
"""The smallest structure."""
