"""Whether anything takes notice of a changed spec.

The mutated file is analysed with the files that it needs. A mutant is caught when the
findings differ, or when a generated or exported file differs by more than digests, or when
a page of the catalog does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from importlib import import_module
from typing import Any

from pytest import MonkeyPatch

from frtspec import resources
from frtspec.closure import Head, Purpose, head, needed
from frtspec.codegen.plan import Plan, findings, plan
from frtspec.diag.diagnostic import Diagnostic, has_errors
from frtspec.diag.source import SourceFile
from frtspec.docgen.pages import Catalog, overview, structure_page
from frtspec.docgen.pipepages import pipeline_page
from frtspec.importers.flashrt.export import export
from frtspec.ir.decl import Structure
from frtspec.lock import declared
from frtspec.sema import analyse
from frtspec.sema.analyse import Analysis
from frtspec.sema.context import Context
from frtspec.sema.target import Built
from frtspec.syntax import ast
from frtspec.syntax.parse import parse
from frtspec.syntax.read import read_source

driver = import_module("frtspec.sema.analyse")
_DIGEST = re.compile(r"\b[0-9a-f]{64}\b")

Findings = tuple[tuple[str, str, str], ...]


@dataclass(frozen=True)
class Seen:
    """What a user sees of some files: findings, and texts that are made of them."""

    findings: Findings
    texts: Mapping[str, str]
    contracts: tuple[str, ...] = field(default=(), compare=False)
    """Contract digests of the file's own declarations: no part of what is seen."""


@dataclass
class SpecFile:
    source: SourceFile
    tree: ast.File

    @property
    def path(self) -> str:
        return self.source.path


@dataclass(eq=False)
class World:
    """The files of the catalog, and what each needs."""

    files: Mapping[str, SpecFile] = field(default_factory=dict)

    @classmethod
    @cache
    def of_catalog(cls) -> World:
        """The specs as they are, read once a process."""
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
    def heads(self) -> dict[str, Head]:
        return {name: head(file.source.text) for name, file in self.files.items()}

    def needed(self, name: str) -> list[str]:
        """The other files that this one needs to be checked, in the order of the catalog."""
        found = needed(self.heads, {name}, Purpose.CHECK)
        return [other for other in self.files if other in found and other != name]

    def seen(self, name: str, tree: ast.File, others: Iterable[str]) -> Seen:
        """All that a user sees of a file, with ``tree`` in its place."""
        look = self.look(name, tree, others)
        return Seen(look.findings, dict(look.texts()), look.contracts())

    def noticed(
        self, name: str, tree: ast.File, others: Iterable[str], before: Seen
    ) -> Look | None:
        """None where anything that a user sees is not as before; else what was looked at. The
        first difference ends the search."""
        look = self.look(name, tree, others)
        if look.findings != before.findings:
            return None
        count = 0
        for place, text in look.texts():
            count += 1
            if before.texts.get(place) != text:
                return None
        same = count == len(before.texts) and look.findings == before.findings
        return look if same else None

    def look(self, name: str, tree: ast.File, others: Iterable[str]) -> Look:
        own = self.files[name]
        rest = [(self.files[n].source, self.files[n].tree) for n in others]
        with unchanged(self, own):
            analysis = analyse([(own.source, tree), *rest])
        return Look(self, own, analysis)


@dataclass
class Look:
    """A file among those that it needs, looked at step by step."""

    world: World
    own: SpecFile
    analysis: Analysis
    later: list[Diagnostic] = field(default_factory=list)

    @property
    def findings(self) -> Findings:
        about = [d for d in self.analysis.diagnostics if d.span.path == self.own.path]
        return tuple((d.code, d.severity, d.message) for d in (*about, *self.later))

    def texts(self) -> Iterator[tuple[str, str]]:
        """What is made of it, each place with its text: generated files, those of its own
        declarations first, then exported ones and pages. Nothing where it has errors. Findings
        of these steps are added to the others on the way."""
        if has_errors(d for d in self.analysis.diagnostics if d.span.path == self.own.path):
            return
        program = self.analysis.program
        yield from self._generated(findings(program, "flashrt_gen", {self.own.path}), "own ")
        made = plan(program, "flashrt_gen", None, None)
        self.later += made.diagnostics
        yield from self._generated(made, "")
        exported = export(program, program.bindings.values(), named=False)
        self.later += exported.diagnostics
        yield from exported.files.items()
        for name, page in self._pages().items():
            yield f"page {name}", page

    def _generated(self, made: Plan, label: str) -> Iterator[tuple[str, str]]:
        for unit in made.units:
            yield f"{label}{unit.path}", _DIGEST.sub("", unit.raw())

    def contracts(self) -> tuple[str, ...]:
        """Contract digests of the file's own declarations: no part of what is seen."""
        return tuple(
            item.row.contract_digest
            for item in declared(self.analysis.program)
            if item.span.path == self.own.path
        )

    def _pages(self) -> dict[str, str]:
        program, own = self.analysis.program, self.own
        sources = {file.path: file.source for file in self.world.files.values()}
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


_KEPT: dict[tuple[str, int, tuple[str, ...]], tuple[object, Any]] = {}
"""What was made of what: (how, its identity, more), the thing itself so that it stays, result."""


def kept(how: str, of: object, make: Callable[[], Any]) -> Any:
    key = (how, id(of), ())
    if key not in _KEPT:
        _KEPT[key] = of, make()
    return _KEPT[key][1]


def _holds_structures(node: ast.StructureDecl) -> bool:
    slots = (member for member in node.members if isinstance(member, ast.SlotDecl))
    return any(slot.structure is not None for slot in slots)


@contextmanager
def unchanged(world: World, own: SpecFile) -> Iterator[None]:
    """What the analysis finds in a file that is not changed is found once a process instead of
    once a mutant; and each structure of those files is built and digested once, but those that
    hold structures where the changed file declares some."""
    rest = [file.tree for file in world.files.values() if file is not own]
    trees, decls = {id(tree) for tree in rest}, {id(decl) for tree in rest for decl in tree.decls}
    composed = any(isinstance(decl, ast.StructureDecl) for decl in own.tree.decls)
    missing, torn, build, digest = (
        getattr(driver, n) for n in ("unsupported", "error_nodes", "build_structure", "digested")
    )

    def built(
        source: SourceFile,
        node: ast.StructureDecl,
        context: Context,
        structures: Mapping[str, Mapping[int, Built]],
        forms: Collection[str],
    ) -> Structure:
        key = ("built", id(node), tuple(forms))
        open_ = id(node) not in decls or (composed and _holds_structures(node))
        if open_ or key not in _KEPT:
            made: Structure = build(source, node, context, structures, forms)
            if open_ or context.found or context.dropped.mattered:
                return made
            _KEPT[key] = node, made
        known: Structure = _KEPT[key][1]
        structures_kept.add(id(known))
        return known

    structures_kept: set[int] = set()

    def digested(decl: Any) -> Any:
        if id(decl) in structures_kept:
            return kept("digested", decl, lambda: digest(decl))
        return digest(decl)

    def unsupported(file: ast.File) -> list[Diagnostic]:
        if id(file) in trees:
            return list(kept("unsupported", file, lambda: list(missing(file))))
        return list(missing(file))

    def error_nodes(nodes: list[ast.Decl]) -> Any:
        (decl,) = nodes
        return kept("torn", decl, lambda: torn(nodes)) if id(decl) in decls else torn(nodes)

    with MonkeyPatch.context() as patch:
        patch.setattr(driver, "unsupported", unsupported)
        patch.setattr(driver, "error_nodes", error_nodes)
        patch.setattr(driver, "build_structure", built)
        patch.setattr(driver, "digested", digested)
        yield
