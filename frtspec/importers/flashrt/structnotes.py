"""What the structures of the source say that can't be, or that nothing in it holds to.

Notes only: our own structures take the place of theirs, and each note says how.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from frtspec.diag.diagnostic import Diagnostic
from frtspec.importers.flashrt.catalog import STRUCTURES
from frtspec.importers.flashrt.structures import PeerStructure, Tensor
from frtspec.importers.flashrt.yamldoc import Scalar
from frtspec.syntax.read import read_source

DIM, POINT, METRIC = "FRT0886", "FRT0887", "FRT0894"

_NAME = re.compile(r"[A-Za-z_]\w*")
_EXPRESSION = re.compile(r"[\w\s+*/()|-]+")
_RUN_TOGETHER = re.compile(r"\d[A-Za-z_]")

COMPUTED = frozenset({"cosine", "max_abs", "p99_abs"})
"""Metrics that the gates of flash-rt and flashrt-structures compute."""

_OURS = {"rel_l2": "rel_l2", "relative_l2": "rel_l2", "token_agreement": "token_agreement"}


def notes(structures: Mapping[str, PeerStructure], folder: Path) -> Iterator[Diagnostic]:
    """Every note about every structure, in the order of their names."""
    for structure in structures.values():
        yield from _dims(structure)
        yield from _points(structure, folder)
        yield from _metrics(structure)


def _note(code: str, message: str, at: Scalar, help: str) -> Diagnostic:
    return Diagnostic(code, message, at.span, "note", help=help)


# ---------------------------------------------------------------- dims


def _dims(structure: PeerStructure) -> Iterator[Diagnostic]:
    told: set[str] = set()
    rows: tuple[Tensor, ...] = (*structure.inputs, *structure.outputs, *structure.slots)
    for row in rows:
        for dim in row.dims:
            if dim.text == "*" or not isinstance(dim.value, str):
                continue
            if _RUN_TOGETHER.search(dim.text) or not _EXPRESSION.fullmatch(dim.text):
                yield _note(
                    DIM,
                    f"`{dim.text}` of `{row.name.text}` is no expression: a number and a name "
                    "stand side by side",
                    dim,
                    "a product here; nothing in the source reads it",
                )
            elif not _NAME.fullmatch(dim.text):
                yield _note(
                    DIM,
                    f"`{dim.text}` of `{row.name.text}` is taken as the name of a dim by all that "
                    "reads it",
                    dim,
                    "an expression here, solved with the others",
                )
            for name in _NAME.findall(_RUN_TOGETHER.sub(lambda m: m[0][-1], dim.text)):
                if name not in structure.dims and name not in told:
                    told.add(name)
                    yield _note(
                        DIM,
                        f"`{name}` of `{row.name.text}` is not among the symbolic_dims of "
                        f"{structure.name}",
                        dim,
                        "declared here",
                    )


# ---------------------------------------------------------------- points


def _points(structure: PeerStructure, folder: Path) -> Iterator[Diagnostic]:
    known = {tensor.name.text for tensor in (*structure.inputs, *structure.outputs)}
    defined = _defined(structure, folder)
    for points in structure.points:
        for point in points.names:
            if point.text in known or defined is None or point.text in defined:
                continue
            yield _note(
                POINT,
                f"the point `{point.text}` is no value of {structure.name}'s reference, input "
                "or output",
                point,
                "a definition in the reference here, so it can't dangle",
            )
        if points.key.text != "points" and points.names:
            yield _note(
                POINT,
                f"`{points.key.text}` belongs to a form of {structure.name} that has no reference",
                points.key,
                "the form has a reference of its own here",
            )
    condition = structure.condition
    if condition is not None:
        why = (
            "there is no point it could be about"
            if not any(points.names for points in structure.points)
            else "nothing evaluates it"
        )
        yield _note(
            POINT,
            f"`optional_when: {condition.text}` is a text, and {why}",
            condition,
            "a point here exists when its condition, written in the language, holds",
        )


def _defined(structure: PeerStructure, folder: Path) -> set[str] | None:
    """Names that the reference's function binds; None where its source can't be read.

    The source is parsed and not run.
    """
    if structure.reference is None:
        return None
    module, entry = structure.reference
    if not all(part.isidentifier() for part in module.split(".")):
        return None
    path = folder.joinpath(STRUCTURES, *module.split(".")).with_suffix(".py")
    source, _ = read_source(str(path))
    if source is None:
        return None
    try:
        tree = ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry:
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            return names | {
                argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)
            }
    return None


# ---------------------------------------------------------------- metrics


def _metrics(structure: PeerStructure) -> Iterator[Diagnostic]:
    for metric in structure.metrics:
        if metric.text in COMPUTED:
            continue
        ours = _OURS.get(metric.text)
        yield _note(
            METRIC,
            f"no gate of the source computes the metric `{metric.text}` of {structure.name}",
            metric,
            f"`{ours}` here, which is measured" if ours else "not carried over",
        )
