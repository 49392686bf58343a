"""Bindings as documents of flash-rt's catalog, written from the typed IR alone.

What a document holds is what the IR holds: nothing of the YAML that a binding was once
imported from is kept. ``docs/importing.md`` lists what is carried and what is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import yaml

from frtspec.diag.diagnostic import Diagnostic, has_errors
from frtspec.diag.source import Span
from frtspec.importers.flashrt.export_pipeline import pipeline_document
from frtspec.importers.flashrt.export_region import region_document
from frtspec.importers.flashrt.plaindoc import CannotExport
from frtspec.importers.flashrt.words import TARGET, exported_name
from frtspec.ir.decl import Binding, Program

NO_COUNTERPART, CANNOT = "FRT0895", "FRT0899"
SUFFIX = ".yaml"


@dataclass(frozen=True)
class Exported:
    """``files``: name -> text, empty when any finding is an error."""

    files: Mapping[str, str]
    diagnostics: tuple[Diagnostic, ...]


def export(program: Program, bindings: Iterable[Binding], named: bool) -> Exported:
    """One document for each binding that has a counterpart in flash-rt's catalog.

    named  whether the bindings were asked for by name: one without a counterpart is then
           an error, where else it is passed over
    """
    files: dict[str, str] = {}
    found: list[Diagnostic] = []
    for binding in bindings:
        name = counterpart(binding)
        if name is None:
            if named:
                found.append(_no_counterpart(binding))
            continue
        try:
            document = _document(program, binding, name)
        except CannotExport as problem:
            found.append(Diagnostic(CANNOT, problem.message, problem.span, help=problem.help))
            continue
        files[f"{name}{SUFFIX}"] = yaml_text(document)
    return Exported({} if has_errors(found) else files, tuple(found))


def counterpart(binding: Binding) -> str | None:
    """The name of a binding in flash-rt's catalog."""
    block = next((e for e in binding.exports if e.target == TARGET), None)
    said = None if block is None else block.get("binding")
    return said or exported_name(binding.name)


def yaml_text(document: Mapping[str, object]) -> str:
    """The document as YAML: keys in the order given, one line for what fits on one."""
    text: str = yaml.safe_dump(
        document, sort_keys=False, allow_unicode=True, width=100, default_flow_style=None
    )
    return text


def _document(program: Program, binding: Binding, name: str) -> dict[str, object]:
    if binding.pipelines:
        return pipeline_document(program, binding, name)
    return region_document(program, binding, name)


def _no_counterpart(binding: Binding) -> Diagnostic:
    at = Span(binding.origin.span.path, binding.origin.span.start, binding.origin.span.start)
    return Diagnostic(
        NO_COUNTERPART,
        f"binding `{binding.name}` has no counterpart in flash-rt's catalog",
        at,
        help='those called `flashrt_…` have one; name another with `export flash_rt { binding = "…" }`',
    )
