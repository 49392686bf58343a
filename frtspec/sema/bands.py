"""Bands of an impl together: no row count served twice, none forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from frtspec.ir import decl as ir
from frtspec.sema.context import Context
from frtspec.syntax import ast

BANDS = "FRT0408"


def check_bands(
    context: Context, rungs: Sequence[ast.RungDecl], bands: Sequence[tuple[ast.BandDecl, ir.Band]]
) -> None:
    """Reports bands that overlap, that run nothing, or that do not say what becomes of the
    other row counts. ``rungs``: those beside the bands, which come behind each band's own."""
    if not bands:
        return
    for node, band in bands:
        if (
            not band.rungs
            and not rungs
            and not any(isinstance(r, ast.ErrorNode) for r in node.rungs)
        ):
            context.error(BANDS, "nothing runs in this band", node.range.span, help="add a rung")
    _overlaps(context, bands)
    _others(context, bands)


def _overlaps(context: Context, bands: Sequence[tuple[ast.BandDecl, ir.Band]]) -> None:
    ordered = sorted(bands, key=lambda item: item[1].lo)
    for (first, before), (node, band) in pairwise(ordered):
        if before.hi is None or band.lo <= before.hi:
            context.error(
                BANDS,
                f"{band.lo} rows lie in two bands",
                node.range.span,
                notes=((first.range.span, "the other one"),),
                help="a row count belongs to one band",
            )


def _others(context: Context, bands: Sequence[tuple[ast.BandDecl, ir.Band]]) -> None:
    """`otherwise host` stands once, behind the last band, where row counts are left."""
    said = [node for node, _ in bands if node.otherwise_host]
    for node in said:
        if node is not bands[-1][0]:
            message = "`otherwise host` stands behind the last band"
            context.error(BANDS, message, node.span, help="write it once, at the end")
    left = _left([(band.lo, band.hi) for _, band in sorted(bands, key=lambda b: b[1].lo)])
    last = bands[-1][0]
    if left is not None and not said and "otherwise" not in context.dropped:
        context.error(
            BANDS,
            f"nothing is said about {left}",
            last.range.span,
            help="write `otherwise host` behind the last band, or serve them in a band",
        )
    elif left is None and said:
        message = "`otherwise host` is never reached: the bands serve every row count"
        context.error(BANDS, message, said[0].span, help="leave it out")


def _left(bands: Sequence[tuple[int, int | None]]) -> str | None:
    """Row counts that no band serves, in words; None: there are none."""
    start = 1
    for lo, hi in bands:
        if lo > start:
            return f"{start} rows" if lo == start + 1 else f"{start} to {lo - 1} rows"
        if hi is None:
            return None
        start = max(start, hi + 1)
    return f"{start} rows and more"
