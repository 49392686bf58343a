"""Solving for dims: from what is given, then weights, then the other tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import cast

from frtspec.dims.errors import DimError
from frtspec.dims.poly import Axis, Poly, Shape, lookup
from frtspec.dims.shape import instance, shape_text, symbols_of

Sizes = Sequence[int]
Actual = Sizes | Sequence[Sizes]
"""Sizes of a tensor; for a repeated value, the sizes of each in order."""


@dataclass(frozen=True)
class Solution:
    """``values`` of every symbol found (given ones included); ``undetermined`` the
    symbols of the shapes that nothing fixed, sorted."""

    values: Mapping[str, int]
    undetermined: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Equation:
    """One axis of one tensor: its declared sizes against the size found."""

    tensor: str
    axis: int
    declared: Axis
    found: int


@dataclass
class _State:
    values: dict[str, int]
    sources: dict[str, str]
    open: list[_Equation] = field(default_factory=list)


def solve(
    shapes: Mapping[str, Shape],
    actual: Mapping[str, Actual],
    given: Mapping[str, int] | None = None,
    *,
    given_by: str = "the config",
) -> Solution:
    """Find the dims that make ``actual`` sizes fit the declared ``shapes``.

    ``given`` fixes symbols beforehand (``given_by`` names where from in messages).
    Tensors without folded rows (the weights) are read before the others, so that a
    wrong input is blamed and not the weight. A repeated value is given as a sequence
    of sizes; its ``N[i]`` becomes ``N[0]``, ``N[1]``… Nothing is guessed: symbols that
    no axis fixes are listed in ``undetermined``.

    Raises ``DimError`` when a size does not fit, saying what fixed it.
    """
    state = _State(dict(given or {}), dict.fromkeys(given or {}, given_by))
    tensors = _tensors(shapes, actual)
    for name, shape, sizes in sorted(tensors, key=lambda t: any(a.rows for a in t[1])):
        state.open.extend(_equations(name, shape, sizes))
    while any(_step(state, equation) for equation in list(state.open)):
        pass
    for equation in state.open:
        _refuse_impossible(state, equation)
    wanted = {s for _, shape, _ in tensors for s in symbols_of(shape)}
    wanted |= {s for name, shape in shapes.items() if name not in actual for s in symbols_of(shape)}
    undetermined = sorted(s for s in wanted if lookup(s, state.values) is None)
    return Solution(state.values, tuple(undetermined))


def _tensors(
    shapes: Mapping[str, Shape], actual: Mapping[str, Actual]
) -> list[tuple[str, Shape, Sizes]]:
    """Pair declared and actual, repeated values spelled out."""
    out: list[tuple[str, Shape, Sizes]] = []
    for name, sizes in actual.items():
        if name not in shapes:
            raise DimError(f"no tensor of this name; declared: {', '.join(shapes)}", tensor=name)
        if sizes and not isinstance(sizes[0], int):
            out.extend(
                (f"{name}[{k}]", instance(shapes[name], k), tuple(one))
                for k, one in enumerate(cast(Sequence[Sizes], sizes))
            )
        else:
            out.append((name, shapes[name], tuple(cast(Sizes, sizes))))
    return out


def _equations(name: str, shape: Shape, sizes: Sizes) -> list[_Equation]:
    """Align axes from the right; a leading ``rows`` axis takes what is left over."""
    folds = bool(shape) and shape[0].rows
    fixed = len(shape) - folds
    if len(sizes) < fixed or (len(sizes) > fixed and not folds):
        raise DimError(
            f"expected {_axes(fixed, folds)} {shape_text(shape)}, "
            f"found {len(sizes)}: {list(sizes)}",
            tensor=name,
            expected=shape_text(shape),
        )
    lead = len(sizes) - fixed
    out = [_Equation(name, lead + k, axis, sizes[lead + k]) for k, axis in enumerate(shape[folds:])]
    if folds:
        out.append(_Equation(name, 0, shape[0], prod(sizes[:lead])))
    return out


def _axes(count: int, folds: bool) -> str:
    return f"{'at least ' if folds else ''}{count} {'axis' if count == 1 else 'axes'},"


def _step(state: _State, equation: _Equation) -> bool:
    """Use one equation if what is known allows it; True when it is settled."""
    options = equation.declared.alternatives
    if not options:
        state.open.remove(equation)
        return True
    reduced = [_known(state, option) for option in options]
    if all(not option.symbols() for option in reduced):
        if not any(option.as_int() == equation.found for option in reduced):
            raise _misfit(state, equation)
        state.open.remove(equation)
        return True
    if len(options) > 1 or len(reduced[0].symbols()) > 1:
        return False
    (symbol,) = reduced[0].symbols()
    answer = _linear(reduced[0], symbol, equation.found)
    if answer is None:
        return False
    whole, value = answer
    if not whole or value < 0:
        raise _no_whole(state, equation, symbol)
    state.values[symbol] = value
    state.sources[symbol] = f"{equation.tensor}, axis {equation.axis}"
    state.open.remove(equation)
    return True


def _known(state: _State, poly: Poly) -> Poly:
    found = {s: lookup(s, state.values) for s in poly.symbols()}
    return poly.subs({s: v for s, v in found.items() if v is not None})


def _linear(poly: Poly, symbol: str, found: int) -> tuple[bool, int] | None:
    """Solve ``a*symbol + b == found``: (is it whole, value); None when not linear."""
    slope = offset = 0
    for monomial, coefficient in poly.terms:
        if monomial == ():
            offset = coefficient
        elif monomial == ((symbol, 1),):
            slope = coefficient
        else:
            return None
    top = found * poly.den - offset
    return top % slope == 0, top // slope


def _refuse_impossible(state: _State, equation: _Equation) -> None:
    """Alternatives that are still open: refuse when those that are known all miss and
    none of the others is left."""
    reduced = [_known(state, option) for option in equation.declared.alternatives]
    if not any(option.symbols() or option.as_int() == equation.found for option in reduced):
        raise _misfit(state, equation)


def _misfit(state: _State, equation: _Equation) -> DimError:
    values = []
    for option in equation.declared.alternatives:
        number = _known(state, option).as_int()
        shown = "no whole number" if number is None else str(number)
        values.append(shown if str(option) == shown else f"{option} = {shown}")
    return DimError(
        f"expected {' or '.join(values)}, found {equation.found}",
        tensor=equation.tensor,
        axis=equation.axis,
        expected=str(equation.declared),
        found=equation.found,
        because=_because(state, equation),
    )


def _no_whole(state: _State, equation: _Equation, symbol: str) -> DimError:
    declared = equation.declared.alternatives[0]
    return DimError(
        f"expected {declared}, found {equation.found}: no whole {symbol} gives that",
        tensor=equation.tensor,
        axis=equation.axis,
        expected=str(equation.declared),
        found=equation.found,
        because=_because(state, equation),
    )


def _because(state: _State, equation: _Equation) -> tuple[str, ...]:
    return tuple(
        f"{s} = {state.values[s]} from {state.sources[s]}"
        for s in equation.declared.symbols()
        if s in state.values
    )
