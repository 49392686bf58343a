"""Every file of a run together: names across files, then each declaration by kind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from frtspec.diag.diagnostic import Diagnostic, has_errors, in_order
from frtspec.diag.source import SourceFile, Span
from frtspec.ir.canon import digested
from frtspec.ir.decl import AutoTable, Binding, Impl, Pipeline, Program, Scheme, Structure
from frtspec.sema.binding import Bindings
from frtspec.sema.context import Context, LostWords, error_nodes, words_of
from frtspec.sema.impl import build_impl
from frtspec.sema.inorder import inner_first
from frtspec.sema.pipeline import build_pipeline
from frtspec.sema.scheme import Schemes, build_auto
from frtspec.sema.scope import reserved
from frtspec.sema.structure import build_structure
from frtspec.sema.target import Built, resolve
from frtspec.sema.unsupported import unsupported
from frtspec.syntax import ast

Files = Sequence[tuple[SourceFile, ast.File]]
TargetKey = tuple[str, int, str | None]

TAKEN = ("structures", "pipelines", "impls", "schemes", "gates")
"""Folders of the generated package: no binding can be called like one."""

_INSTEAD = {
    "structure": ", or give it a version of its own",
    "auto": "; a project's own schemes/auto.frt stands in for the catalog's",
}
"""What else to do about a name that is declared twice, where it can't be renamed."""


@dataclass(frozen=True)
class Analysis:
    """``program``: every declaration that is right, with those it depends on right too.
    ``diagnostics``: everything found, in order of place.
    ``open``: whether more files could change what was found about these: a name that none of
    them declares was looked for, or structures are made of each other in a circle."""

    program: Program
    diagnostics: tuple[Diagnostic, ...]
    open: bool = False


def analyse(files: Files) -> Analysis:
    """Check parsed files together. Never raises on bad input."""
    run = _Run(files)
    run.structures_and_pipelines()
    run.impls()
    run.schemes()
    run.bindings()
    run.no_consumer()
    return Analysis(run.program(), in_order(run.found), run.open)


@dataclass
class _Run:
    files: Files
    found: list[Diagnostic] = field(default_factory=list)
    lost: frozenset[str] = frozenset()
    first: dict[tuple[object, ...], ast.Name] = field(default_factory=dict)
    built: dict[str, dict[int, Built]] = field(default_factory=dict)
    pipelines: dict[str, dict[int, Pipeline]] = field(default_factory=dict)
    right_pipelines: set[tuple[str, int]] = field(default_factory=set)
    forms: dict[TargetKey, dict[str, Impl | None]] = field(default_factory=dict)
    right_schemes: dict[str, Scheme] = field(default_factory=dict)
    auto: AutoTable | None = None
    right_bindings: dict[str, Binding] = field(default_factory=dict)
    unsupported: list[Diagnostic] = field(default_factory=list)
    open: bool = False
    torn: dict[int, frozenset[str]] = field(default_factory=dict)
    """Declarations with parts that could not be read, by identity: the words of those."""

    def __post_init__(self) -> None:
        lost: set[str] = set()
        for source, file in self.files:
            top = [d for d in file.decls if isinstance(d, ast.ErrorNode)]
            lost |= words_of(source, top)
            self.unsupported += unsupported(file)
            for decl in file.decls:
                if error_nodes([decl]):
                    self.torn[id(decl)] = words_of(source, [decl])
        self.lost = frozenset(lost)

    # ------------------------------------------------------------ shared steps

    def each(self, kind: type) -> Iterator[tuple[SourceFile, ast.Decl]]:
        for source, file in self.files:
            for decl in file.decls:
                if isinstance(decl, kind):
                    yield source, decl

    def context(self, node: ast.Decl, what: str) -> Context:
        return Context(what, LostWords(self.lost | self.torn.get(id(node), frozenset())))

    def close(self, context: Context, node: ast.Decl) -> bool:
        """Keep what was found; whether the declaration is right and fully consumed."""
        found = context.finish()
        self.found += found
        self.open |= context.widened
        broken = id(node) in self.torn or context.dropped.mattered
        missing = any(_within(d.span, node.span) for d in self.unsupported)
        return not (has_errors(found) or broken or missing)

    def claim(self, context: Context, key: tuple[object, ...], name: ast.Name, what: str) -> bool:
        """Take a name for a declaration; reports and returns False when it is taken."""
        why = reserved(name.id)
        if why is not None:
            message = f"{key[0]} cannot be called `{name.id}`"
            context.error("FRT0204", message, name.span, help=f"{why}: rename it")
        before = self.first.setdefault(key, name)
        if before is name:
            return True
        context.error(
            "FRT0203",
            f"{what} is declared twice",
            name.span,
            notes=((before.span, "first here"),),
            help=f"leave one of the two out{_INSTEAD.get(str(key[0]), ', or rename it')}",
        )
        return False

    # ------------------------------------------------------------ kinds

    def structures_and_pipelines(self) -> None:
        forms = self.forms_named()
        ordered = inner_first(list(self.each(ast.StructureDecl)), self.found)
        self.open |= bool(self.found)  # where a circle is opened hangs on what else is read
        for source, node, opened in ordered:
            context = self.context(node, f"structure {node.name.id}")
            context.dropped.add(opened)
            impls = forms.get(node.name.id, ())
            structure = build_structure(source, node, context, self.built, impls)
            what = f"structure {structure.name} version {structure.version}"
            key = ("structure", structure.name, structure.version)
            new = self.claim(context, key, node.name, what)
            right = self.close(context, node)
            right &= all(
                self.is_right((slot.inner.name, slot.inner.version))
                for slot in structure.slots
                if slot.inner is not None
            )
            lost = self.lost | self.torn.get(id(node), frozenset())
            if new:
                named = {m.name.id for m in node.members if isinstance(m, ast.SeamDecl)}
                seams_lost = named != {s.name for s in structure.seams}
                by_version = self.built.setdefault(structure.name, {})
                by_version[structure.version] = Built(structure, lost, seams_lost, right)
        for source, stages in self.each(ast.PipelineDecl):
            assert isinstance(stages, ast.PipelineDecl)
            context = self.context(stages, f"pipeline {stages.name.id}")
            pipeline = build_pipeline(source, stages, self.built, context)
            key = ("pipeline", pipeline.name, pipeline.version)
            what = f"pipeline {pipeline.name} version {pipeline.version}"
            new = self.claim(context, key, stages.name, what)
            right = self.close(context, stages) and all(map(self.is_right, pipeline.embeds))
            if new:
                self.pipelines.setdefault(pipeline.name, {})[pipeline.version] = pipeline
            if new and right:
                self.right_pipelines.add((pipeline.name, pipeline.version))

    def forms_named(self) -> dict[str, list[str]]:
        """Structure -> the names of its impls, in order."""
        out: dict[str, list[str]] = {}
        for _, node in self.each(ast.ImplDecl):
            assert isinstance(node, ast.ImplDecl)
            names = out.setdefault(node.target.name.id, [])
            names += [] if node.name.id in names else [node.name.id]
        return out

    def impls(self) -> None:
        for source, node in self.each(ast.ImplDecl):
            assert isinstance(node, ast.ImplDecl)
            context = self.context(node, f"impl {node.name.id}")
            target = resolve(context, node.target, self.built)
            if target is None:
                self.close(context, node)
                continue
            impl = build_impl(source, node, target, context)
            what = f"impl {node.name.id} for {target.text}"
            new = self.claim(context, ("impl", *target.key, impl.name), node.name, what)
            right = self.close(context, node) and self.is_right(impl.structure)
            if new:
                offered = self.forms.setdefault(target.key, {})
                offered[impl.name] = impl if right else None

    def schemes(self) -> None:
        builder = Schemes(self.built, self.forms)
        names = [n.name.id for _, n in self.each(ast.SchemeDecl) if isinstance(n, ast.SchemeDecl)]
        for source, node in self.each(ast.SchemeDecl):
            assert isinstance(node, ast.SchemeDecl)
            context = self.context(node, f"scheme {node.name.id}")
            scheme = builder.build(source, node, context)
            new = self.claim(context, ("scheme", scheme.name), node.name, f"scheme {scheme.name}")
            if self.close(context, node) and new and self.routes_right(scheme):
                self.right_schemes[scheme.name] = scheme
        for source, node in self.each(ast.AutoDecl):
            assert isinstance(node, ast.AutoDecl)
            context = self.context(node, "auto")
            table = build_auto(source, node, names, context)
            new = self.claim(context, ("auto",), ast.Name("auto", node.span), "`auto`")
            if self.close(context, node) and new:
                self.auto = table

    def bindings(self) -> None:
        builder = Bindings(self.built, self.pipelines)
        for source, node in self.each(ast.BindingDecl):
            assert isinstance(node, ast.BindingDecl)
            context = self.context(node, f"binding {node.name.id}")
            binding = builder.build(source, node, context)
            what = f"binding {binding.name}"
            new = self.claim(context, ("binding", binding.name), node.name, what)
            if binding.name in TAKEN:
                message = f"binding cannot be called `{binding.name}`"
                help = "the generated package has a folder of that name: rename it"
                context.error("FRT0204", message, node.name.span, help=help)
            right = self.close(context, node) and all(
                self.is_right(seat.structure) for group in binding.groups for seat in group.seats
            )
            right &= {use.pipeline for use in binding.pipelines} <= self.right_pipelines
            if new and right:
                self.right_bindings[binding.name] = binding

    def no_consumer(self) -> None:
        self.found += self.unsupported

    # ------------------------------------------------------------ the result

    def is_right(self, key: tuple[str, int]) -> bool:
        return self.built[key[0]][key[1]].right

    def routes_right(self, scheme: Scheme) -> bool:
        """Whether every impl that a scheme uses is right."""
        for route in scheme.routes:
            key = (route.structure, route.structure_version, route.seam)
            if route.use is not None and self.forms.get(key, {}).get(route.use) is None:
                return False
        return True

    def program(self) -> Program:
        structures: dict[tuple[str, int], Structure] = {
            (name, number): digested(built.structure)
            for name, by_version in sorted(self.built.items())
            for number, built in sorted(by_version.items())
            if built.right
        }
        impls = {
            (*key, name): digested(impl)
            for key, offered in sorted(self.forms.items(), key=lambda item: _order(item[0]))
            for name, impl in sorted(offered.items())
            if impl is not None
        }
        schemes = {n: digested(s) for n, s in sorted(self.right_schemes.items())}
        bindings = {n: digested(b) for n, b in sorted(self.right_bindings.items())}
        auto = None if self.auto is None else digested(self.auto)
        pipelines = {k: digested(self.pipelines[k[0]][k[1]]) for k in sorted(self.right_pipelines)}
        return Program(structures, impls, schemes, auto, bindings, pipelines)


def _order(key: TargetKey) -> tuple[str, int, str]:
    return key[0], key[1], key[2] or ""


def _within(inner: Span, outer: Span) -> bool:
    return inner.path == outer.path and outer.start <= inner.start and inner.end <= outer.end
