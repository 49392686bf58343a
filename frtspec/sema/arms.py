"""The arms of a choice by a variant axis."""

from __future__ import annotations

from frtspec.sema.context import Context, listing
from frtspec.syntax import ast


def complete_arms(
    context: Context, node: ast.Match, axis: str, known: tuple[str, ...]
) -> list[tuple[tuple[str, ...], ast.MatchArm]] | None:
    """Arms of a choice with the values each serves; None when the choice was reported.

    Every value of the axis has an arm, or ``else`` covers the rest.
    """
    arms: list[tuple[tuple[str, ...], ast.MatchArm]] = []
    seen: list[str] = []
    right = True
    for arm in node.arms:
        match arm.pattern:
            case ast.Else():
                rest = tuple(value for value in known if value not in seen)
                if not rest:
                    context.error("FRT0309", "every value has an arm already", arm.span)
                seen += rest
                arms.append((rest, arm))
            case ast.Name(id=value) as pattern if value not in known:
                context.unknown(f"value of variant {axis}", pattern, known)
                right = False
            case ast.Name(id=value):
                if value in seen:
                    context.error("FRT0309", f"`{value}` has an arm already", arm.pattern.span)
                    right = False
                seen.append(value)
                arms.append(((value,), arm))
            case _:
                message = f"an arm of `match {axis}` is a value of the variant"
                context.error("FRT0309", message, arm.pattern.span, help=f"one of {listing(known)}")
                right = False
    missing = [value for value in known if value not in seen]
    if missing and right:
        context.error(
            "FRT0309",
            f"`match {axis}` has no arm for {listing(missing)}",
            node.span,
            help="add the arm, or `else => …` for the rest",
        )
    return arms if right and not missing else None
