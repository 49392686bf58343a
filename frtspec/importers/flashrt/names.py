"""Words of the source that have to become names of the language."""

from __future__ import annotations

from collections.abc import Iterator

from frtspec.diag.diagnostic import Diagnostic
from frtspec.importers.flashrt.bindings import Pipeline, Region
from frtspec.importers.flashrt.fields import WRONG_KIND, Report
from frtspec.importers.flashrt.words import imported_name, is_name
from frtspec.importers.flashrt.yamldoc import Scalar


def can_be_written(binding: Region | Pipeline, report: Report) -> bool:
    """Whether every such word is one; those that are not are reported."""
    good = True
    if not is_name(imported_name(binding.name.text)):
        _bad("binding", binding.name, report)
        good = False
    rows = _of_region(binding) if isinstance(binding, Region) else _of_pipeline(binding)
    for what, word in rows:
        if not is_name(word.text):
            _bad(what, word, report)
            good = False
    return good


def _of_region(region: Region) -> Iterator[tuple[str, Scalar]]:
    yield from (("host", host.name) for host in region.hosts)
    yield from (("phase", phase.name) for phase in region.profile)


def _of_pipeline(pipeline: Pipeline) -> Iterator[tuple[str, Scalar]]:
    yield from (("host", host.name) for host in pipeline.hosts)
    yield from (("cadence", name) for name, _ in pipeline.cadences)
    yield from (("segment", segment.name) for segment in pipeline.segments)
    yield from (("segment", name) for name in pipeline.hot_path)


def _bad(what: str, word: Scalar, report: Report) -> None:
    message = f"`{word.text}` can't be the name of a {what} here"
    help = "a name is lower-case letters, digits and _, and no keyword of Python"
    report(Diagnostic(WRONG_KIND, message, word.span, help=help))
