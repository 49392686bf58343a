"""What the docstring of an impl's module says of it, a row for each kind of fact."""

from __future__ import annotations

from collections.abc import Sequence

from frtspec.codegen.formats import quantised, scales_text
from frtspec.codegen.pysrc import wrapped
from frtspec.ir.decl import Impl, Pack, Rung, Scale


def summary(impl: Impl, packs: Sequence[str]) -> list[str]:
    """Aligned rows: packs (as told), scales, numbers, rungs and bands."""
    scales = ", ".join(map(_scale, impl.scales))
    rungs = ", ".join(map(_label, impl.rungs))
    rows: list[tuple[str, Sequence[str]]] = [
        ("packs", packs),
        ("scales", [scales] if scales else []),
        ("numbers", [_numbers(impl)]),
        ("rungs", [rungs] if rungs else []),
    ]
    for band in impl.bands:
        end = f"..={band.hi}" if band.hi is not None else ".."
        labels = ", ".join(map(_label, band.rungs))
        rows.append(("band", [f"{band.dim} in {band.lo}{end}: {labels}"]))
    lines: list[str] = []
    for title, texts in rows:
        for k, text in enumerate(texts):
            head = f"    {title if k == 0 else '':<9}"
            lines += wrapped(text, head, " " * 13) if len(text) > 80 else [head + text]
    return lines


def scaled(pack: Pack) -> str:
    """``, one scale, balanced by in_b``; nothing where a pack is not quantised."""
    if quantised(pack) is None:
        return ""
    balanced = f", balanced by {pack.balance}" if pack.balance else ""
    return f", {scales_text(pack.granularity)}{balanced}"


def _numbers(impl: Impl) -> str:
    """What is rounded to what."""
    stores = [f"{name} rounded to {dtype}" for name, dtype in impl.numerics.stores]
    out = [f"written in {impl.numerics.out}"] if impl.numerics.out else []
    return ", ".join(["float32", *stores, *out])


def _scale(scale: Scale) -> str:
    """``in_s from x_in``."""
    match scale.kind:
        case "static":
            return f"{scale.name} from {scale.point}"
        case "balance":
            return f"{scale.name} balances the channels of {scale.point}"
        case _:
            return (
                f"{scale.point} in {scale.format}, {scales_text(scale.granularity)}, at each call"
            )


def _label(rung: Rung) -> str:
    return f"{rung.kind} {rung.package}@v{rung.version}" if rung.package else rung.kind
