"""Whether anything takes notice of a changed spec.

The mutated file is analysed with the files that it needs. A mutant is caught when the
findings differ, or when a generated or exported file differs by more than digests, or when
a page of the catalog does.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from frtspec import resources
from frtspec.codegen.plan import plan
from frtspec.diag.source import SourceFile
from frtspec.docgen.pages import Catalog, overview, structure_page
from frtspec.docgen.pipepages import pipeline_page
from frtspec.importers.flashrt.export import export
from frtspec.lock import declared
from frtspec.sema import analyse
from frtspec.sema.analyse import Analysis
from frtspec.syntax import ast
from frtspec.syntax.parse import parse
from frtspec.syntax.read import read_source

_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")

Findings = tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Seen:
    """What a user sees of some files: findings, generated texts, pages."""

    findings: Findings
    texts: Mapping[str, str]
    pages: Mapping[str, str]
    contracts: tuple[str, ...] = field(default=(), compare=False)
    """Contract digests of the file's own declarations: no part of what is seen."""


@dataclass
class SpecFile:
    source: SourceFile
    tree: ast.File

    @property
    def path(self) -> str:
        return self.source.path


@dataclass
class World:
    """The files of the catalog, and what each needs."""

    files: Mapping[str, SpecFile] = field(default_factory=dict)

    @classmethod
    def of_catalog(cls) -> World:
        root = resources.specs_dir()
        files = {}
        for path in sorted(root.rglob("*.frt")):
            source, problems = read_source(str(path))
            assert source is not None and not problems, problems
            result = parse(source)
            assert not result.diagnostics, result.diagnostics
            files[path.relative_to(root).as_posix()] = SpecFile(source, result.file)
        return cls(files)

    @cached_property
    def declaring(self) -> Mapping[str, list[str]]:
        """Name of a structure or pipeline -> the files that declare it."""
        found: dict[str, list[str]] = {}
        for name, file in self.files.items():
            for decl in file.tree.decls:
                if isinstance(decl, ast.StructureDecl | ast.PipelineDecl):
                    found.setdefault(decl.name.id, []).append(name)
        return found

    @cached_property
    def impls(self) -> Mapping[str, list[tuple[str, str]]]:
        """Name of a structure -> its impls: each with the file that declares it."""
        found: dict[str, list[tuple[str, str]]] = {}
        for name, file in self.files.items():
            for decl in file.tree.decls:
                if isinstance(decl, ast.ImplDecl):
                    found.setdefault(decl.target.name.id, []).append((decl.name.id, name))
        return found

    def needed(self, name: str) -> list[str]:
        """The other files that a file's names lead to. A scheme needs the impls of its
        structures too, the auto table the schemes."""
        decls = self.files[name].tree.decls
        seen: list[str] = []
        if any(isinstance(d, ast.AutoDecl) for d in decls):
            seen += [n for n in self.files if n.startswith("schemes/") and n != name]
        every = any(isinstance(d, ast.SchemeDecl | ast.AutoDecl) for d in decls)
        stack = [name, *seen]
        while stack:
            for other in self._led_to(stack.pop(), every):
                if other not in seen and other != name:
                    seen.append(other)
                    stack.append(other)
        return seen

    def _led_to(self, name: str, every: bool) -> Iterator[str]:
        words = set(_words(self.files[name].tree))
        for word in sorted(words):
            yield from self.declaring.get(word, ())
            for impl, file in self.impls.get(word, ()):
                if every or impl in words:  # a rule of a structure is about one of its impls
                    yield file

    def seen(self, name: str, tree: ast.File, needed: Iterable[str]) -> Seen:
        """What a user sees of a file, with ``tree`` in its place."""
        own = self.files[name]
        others = [(self.files[n].source, self.files[n].tree) for n in needed]
        analysis = analyse([(own.source, tree), *others])
        findings = tuple(
            (d.code, d.severity, d.message) for d in analysis.diagnostics if d.span.path == own.path
        )
        if any(severity == "error" for _, severity, _ in findings):
            return Seen(findings, {}, {})
        made = plan(analysis.program, "flashrt_gen", None, None)
        findings += tuple((d.code, d.severity, d.message) for d in made.diagnostics)
        texts = {unit.path: _DIGEST.sub("", unit.raw()) for unit in made.units}
        exported = export(analysis.program, analysis.program.bindings.values(), named=False)
        findings += tuple((d.code, d.severity, d.message) for d in exported.diagnostics)
        texts |= exported.files
        contracts = tuple(
            item.row.contract_digest
            for item in declared(analysis.program)
            if item.span.path == own.path
        )
        return Seen(findings, texts, self._pages(analysis, own), contracts)

    def _pages(self, analysis: Analysis, own: SpecFile) -> dict[str, str]:
        program = analysis.program
        sources = {file.path: file.source for file in self.files.values()}
        catalog = Catalog(program, sources)
        pages = {"overview": overview(catalog)}
        for structure in program.structures.values():
            if structure.origin.path == own.path:
                pages[structure.name] = structure_page(catalog, structure)
        for pipeline in program.pipelines.values():
            if pipeline.origin.path == own.path:
                page = pipeline_page(program, pipeline, sources, "picture.svg")
                pages[pipeline.name] = page
        return pages


def _words(node: object) -> Iterable[str]:
    """Every name in a tree."""
    stack = [node]
    while stack:
        at = stack.pop()
        if isinstance(at, ast.Name):
            yield at.id
        elif isinstance(at, tuple):
            stack.extend(at)
        elif hasattr(at, "__dataclass_fields__"):
            stack.extend(getattr(at, name) for name in at.__dataclass_fields__ if name != "span")
        elif isinstance(at, str):
            yield at
