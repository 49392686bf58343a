"""Axes that are more than one exact size: folded rows, alternatives, wildcards."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from frtspec.dims.poly import Axis, Poly, PolyLike, Shape


@dataclass(frozen=True)
class Choice(Axis):
    """An axis with several sizes allowed (none listed: any), or one that folds rows."""

    choices: tuple[Poly, ...]
    folds: bool = False

    @property
    def alternatives(self) -> tuple[Poly, ...]:
        return self.choices

    @property
    def rows(self) -> bool:
        return self.folds

    def subs(self, env: Mapping[str, PolyLike]) -> Axis:
        return axis((poly.subs(env) for poly in self.choices), rows=self.folds)

    def __str__(self) -> str:
        text = " | ".join(str(poly) for poly in self.choices) or "*"
        return f"rows {text}" if self.folds else text

    def __repr__(self) -> str:
        return f"<{self}>"


def axis(alternatives: Iterable[PolyLike], *, rows: bool = False) -> Axis:
    """The axis with these sizes: a ``Poly`` where one exact size is left."""
    unique = tuple(dict.fromkeys(Poly.of(size) for size in alternatives))
    return unique[0] if len(unique) == 1 and not rows else Choice(unique, rows)


def rows(size: PolyLike) -> Axis:
    """Any number of leading axes whose product is ``size``: ``[B, S, D]`` is ``M = B*S``."""
    return axis((size,), rows=True)


def any_axis() -> Axis:
    """An axis of any size (``*``)."""
    return axis(())


def either(*sizes: PolyLike) -> Axis:
    """An axis with one of these sizes (``D/2 | D``)."""
    return axis(sizes)


def symbols_of(shape: Shape) -> tuple[str, ...]:
    """Every symbol of a shape, sorted."""
    return tuple(sorted({symbol for item in shape for symbol in item.symbols()}))


def instance(shape: Shape, position: int) -> Shape:
    """A repeated value's shape at one position: ``[K, N[i]]`` at 2 is ``[K, N[2]]``."""
    env = {
        name: Poly.symbol(f"{name[: name.index('[')]}[{position}]")
        for name in symbols_of(shape)
        if name.endswith("]") and not name[name.index("[") + 1 : -1].isdigit()
    }
    return tuple(item.subs(env) for item in shape)


def shape_text(shape: Shape) -> str:
    """``[rows M, D]``."""
    return f"[{', '.join(str(item) for item in shape)}]"
