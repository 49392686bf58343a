"""Sizes at run time: where in a function's arguments the value of a dim is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from frtspec.codegen.names import free
from frtspec.codegen.unsupported import Unsupported
from frtspec.diag.source import Span
from frtspec.dims import Poly, Shape

_INDEXED = re.compile(r"^(\w+)\[(\w+)\]$")
_SUM = re.compile(r"^sum\((\w+)\)$")


@dataclass(frozen=True)
class Argument:
    """A tensor a function takes: its Python name, its shape, whether it is a list."""

    name: str
    shape: Shape
    repeated: bool


@dataclass
class Sizes:
    """The dims one function needs as numbers. ``locals`` maps a dim to its local variable,
    in the order of first use; ``lines`` are the assignments.

    ``asks``: the function may take a dim that no argument shows as an argument of its own;
    ``asked`` are those, argument -> dim.
    """

    arguments: Sequence[Argument]
    used: frozenset[str]
    where: Span
    names: Mapping[str, str] = field(default_factory=dict)
    locals: dict[str, str] = field(default_factory=dict)
    asks: bool = False

    def __call__(self, symbol: str) -> str:
        """The Python of a dim's value: a local, or an expression for repeated dims."""
        if match := _INDEXED.match(symbol):
            return self._read(symbol, self.names.get(match[2], match[2]))
        if match := _SUM.match(symbol):
            return self._summed(match[1])
        if symbol not in self.locals:
            lower = symbol.lower()
            clash = lower in self.used or lower in self.locals.values()
            self.locals[symbol] = free(f"size_{lower}" if clash else lower, self.used)
        return self.locals[symbol]

    def lines(self) -> list[str]:
        asked = self.asked
        return [
            f"{local} = {self._read(symbol, None)}"
            for symbol, local in self.locals.items()
            if local not in asked
        ]

    @property
    def asked(self) -> dict[str, str]:
        shown = {symbol: self._shown(symbol, None) for symbol in self.locals}
        return {
            local: symbol
            for symbol, local in self.locals.items()
            if self.asks and shown[symbol] is None
        }

    def _read(self, symbol: str, index: str | None) -> str:
        found = self._shown(symbol, index)
        if found is None:
            raise Unsupported(
                f"the value of the dim `{symbol}`, which no argument shows", self.where
            )
        return found

    def _shown(self, symbol: str, index: str | None) -> str | None:
        """``x.shape[-1]``, ``w[i].shape[1]``; None where no argument shows the dim."""
        single = [a for a in self.arguments if a.repeated == (index is not None)]
        for argument in single:
            if place := _place(argument.shape, symbol):
                item = argument.name if index is None else f"{argument.name}[{index}]"
                return f"{item}.shape{place}"
        for argument in single if index is None else ():
            if found := _solved(argument, symbol):
                return found
        return self._in_list(symbol) if index is None else None

    def _in_list(self, symbol: str) -> str | None:
        for argument in self.arguments:
            place = _place(argument.shape, symbol)
            if place is not None and argument.repeated:
                return f"{argument.name}[0].shape{place}"
        return None

    def _summed(self, name: str) -> str:
        for argument in self.arguments:
            if not argument.repeated:
                continue
            for k, axis in enumerate(argument.shape):
                if any(s.startswith(f"{name}[") for s in axis.symbols()) and isinstance(axis, Poly):
                    return f"sum(each.shape[{k - len(argument.shape)}] for each in {argument.name})"
        raise Unsupported(f"`sum({name})`, which no argument shows", self.where)


def _solved(argument: Argument, symbol: str) -> str | None:
    """A dim from an axis that is a multiple or a part of it: ``2 * cos.shape[-1]``."""
    monomial = ((symbol, 1),)
    for k, axis in enumerate(argument.shape):
        if isinstance(axis, Poly) and len(axis.terms) == 1 and axis.terms[0][0] == monomial:
            (_, times), parts = axis.terms[0], axis.den
            size = f"{argument.name}.shape[{k - len(argument.shape)}]"
            whole = size if parts == 1 else f"{parts} * {size}"
            return whole if times == 1 else f"{whole} // {times}"
    return None


def _place(shape: Shape, symbol: str) -> str | None:
    """How to read ``symbol`` off a tensor's shape, or None."""
    wanted = Poly.symbol(symbol)
    folds = bool(shape) and shape[0].rows
    if folds and shape[0].alternatives == (wanted,):
        return f"[:-{len(shape) - 1}].numel()" if len(shape) > 1 else ".numel()"
    for k, axis in enumerate(shape):
        if axis == wanted:
            return f"[{k - len(shape)}]" if folds or k == len(shape) - 1 else f"[{k}]"
    return None
