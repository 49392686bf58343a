"""flash-rt's bindings as specs: judged, written, and checked before anything is kept."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from frtspec.diag.diagnostic import Diagnostic, has_errors, in_order
from frtspec.diag.source import SourceFile
from frtspec.importers.flashrt import conditioning, judge, judge_pipeline, names, structnotes
from frtspec.importers.flashrt.bindings import Pipeline, Region
from frtspec.importers.flashrt.catalog import BINDINGS, Catalog
from frtspec.importers.flashrt.fields import Report
from frtspec.importers.flashrt.site import site
from frtspec.importers.flashrt.words import imported_name
from frtspec.importers.flashrt.write_pipeline import pipeline_text
from frtspec.importers.flashrt.write_region import region_text
from frtspec.ir.decl import Program
from frtspec.sema import analyse
from frtspec.syntax import ast
from frtspec.syntax.fmt import format_source
from frtspec.syntax.parse import parse

NOT_OURS, NO_SPEC = "FRT0896", "FRT0897"

Specs = Sequence[tuple[SourceFile, ast.File]]


class World:
    """What the bindings are about: parsed specs, and what they mean together."""

    def __init__(self, specs: Specs) -> None:
        self.specs = specs
        self.program = analyse(specs).program


@dataclass(frozen=True)
class Imported:
    """``files``: name -> text, empty when any finding is an error. ``unverified``: how many
    of the bindings are ``status imported``."""

    files: Mapping[str, str]
    unverified: int
    diagnostics: tuple[Diagnostic, ...]


def convert(catalog: Catalog, world: World) -> Imported:
    """Every binding of the catalog as a spec.

    Each text is formatted and checked together with the specs of ``world``. One error, in
    the source or in what would be written, and there are no files.
    """
    found = list(catalog.diagnostics)
    known = world.program
    texts: dict[str, str] = {}
    for binding in catalog.bindings.values():
        text = _text(binding, catalog, known, found.append)
        if text is not None:
            texts[binding.name.text] = text
    found += _clashes(catalog.bindings.values())
    found += structnotes.notes(catalog.structures, catalog.folder)
    if has_errors(found):
        return Imported({}, 0, in_order(found))
    files, unverified, problems = _checked(texts, catalog, world.specs)
    found += problems
    return Imported({} if problems else files, unverified, in_order(found))


def _text(
    binding: Region | Pipeline, catalog: Catalog, known: Program, report: Report
) -> str | None:
    """The spec's text; None where something keeps it from being written (reported)."""
    if not names.can_be_written(binding, report):
        return None
    key = (binding.structure.name, binding.structure.version)
    evidence = _evidence(binding, catalog)
    if isinstance(binding, Pipeline):
        pipeline = known.pipelines.get(key)
        if pipeline is None:
            report(_missing("pipeline", binding, known.pipelines))
            return None
        verdict = judge_pipeline.pipeline(binding, pipeline, catalog, report)
        return None if verdict is None else pipeline_text(binding, pipeline, verdict, evidence)
    structure = known.structures.get(key)
    if structure is None:
        report(_missing("structure", binding, known.structures))
        return None
    place = site(binding, structure, report)
    if place is None:
        return None
    producer = conditioning.producer(binding, place, report)
    if producer is None and binding.conditioning is not None:
        return None
    held_to = judge.region(binding, place, report)
    return region_text(binding, place, producer, structure, held_to, evidence)


def _missing(what: str, binding: Region | Pipeline, known: Iterable[tuple[str, int]]) -> Diagnostic:
    name, version = binding.structure.name, binding.structure.version
    versions = ", ".join(str(v) for n, v in sorted(known) if n == name)
    return Diagnostic(
        NOT_OURS,
        f"`{binding.name.text}` is about version {version} of {name}, which has no spec here",
        binding.name.span,
        help=f"versions here: {versions}" if versions else f"there is no {what} {name} here",
    )


def _clashes(bindings: Iterable[Region | Pipeline]) -> list[Diagnostic]:
    """Bindings whose names would be one and the same here."""
    first: dict[str, Region | Pipeline] = {}
    found = []
    for binding in bindings:
        before = first.setdefault(imported_name(binding.name.text), binding)
        if before is not binding:
            message = f"`{binding.name.text}` and `{before.name.text}` would have one name here"
            notes = ((before.name.span, "the other one is here"),)
            found.append(Diagnostic(NO_SPEC, message, binding.name.span, notes=notes))
    return found


def _evidence(binding: Region | Pipeline, catalog: Catalog) -> str:
    """Where the binding comes from: the file, and the digest of its bytes."""
    source = catalog.sources[binding.name.span.path]
    return (
        f"Imported from flash-rt, {BINDINGS}/{binding.name.text}.yaml, sha256 {source.digest[:16]}."
    )


def _checked(
    texts: Mapping[str, str], catalog: Catalog, specs: Specs
) -> tuple[dict[str, str], int, list[Diagnostic]]:
    """The texts in their one layout, and what the language has against them."""
    files: dict[str, str] = {}
    origin: dict[str, str] = {}
    parsed = list(specs)
    found: list[Diagnostic] = []
    for name, text in texts.items():
        path = f"{imported_name(name)}.frt"
        result = format_source(SourceFile.from_text(path, text))
        origin[path] = name
        files[path] = result.text or text
        source = SourceFile.from_text(path, files[path])
        tree = parse(source)
        found += [*result.diagnostics, *tree.diagnostics]
        parsed.append((source, tree.file))
    analysis = analyse(parsed)
    found += analysis.diagnostics
    problems = [
        _blamed(problem, catalog.bindings[origin[problem.span.path]])
        for problem in found
        if problem.span.path in origin and problem.severity == "error"
    ]
    unverified = sum(b.status.name == "imported" for b in analysis.program.bindings.values())
    return files, unverified, problems


def _blamed(problem: Diagnostic, binding: Region | Pipeline) -> Diagnostic:
    """A finding about what would be written, at the binding it was made from."""
    return dataclasses.replace(
        problem,
        code=NO_SPEC,
        message=f"`{binding.name.text}` makes no valid spec: {problem.message}",
        span=binding.name.span,
        notes=(),
    )
