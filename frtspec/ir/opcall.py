"""One use of an op, as its rule sees it: operand types, attributes, named axes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import cast

from frtspec.dims import Axis, Poly, Shape, shape_text
from frtspec.ir.expr import Attr
from frtspec.ir.types import OpError, Scalar, Tensor, ValueType


@dataclass
class OpCall:
    """One use of an op: what it is called, the types of its operands, its attributes."""

    op: str
    args: tuple[ValueType, ...]
    attrs: dict[str, Attr]
    found: dict[str, Attr] = field(default_factory=dict)

    def tensor(self, position: int) -> Tensor:
        value = self.args[position]
        if not isinstance(value, Tensor):
            raise OpError("argument", f"`{self.op}` takes a tensor here, not {value}")
        return value

    def scalar(self, position: int) -> None:
        value = self.args[position]
        if not isinstance(value, Scalar):
            raise OpError(
                "argument", f"`{self.op}` takes a number as argument {position + 1}, not {value}"
            )

    def poly(self, name: str) -> Poly:
        return cast(Poly, self.attrs[name])

    def polys(self, name: str) -> tuple[Poly, ...]:
        return cast(tuple[Poly, ...], self.attrs[name])

    def whole(self, name: str) -> int:
        return cast(int, self.attrs[name])

    def over(self) -> tuple[str, ...]:
        return cast(tuple[str, ...], self.attrs.get("over", ()))

    def axis(self, shape: Shape, default: int) -> int:
        """The one axis this call names (``over D`` or ``axis = n``), from the end.

        Recorded as ``axis`` for the lowering.
        """
        if len(self.over()) > 1:
            raise OpError("argument", f"`{self.op}` runs over one axis")
        found = self.axes(shape, default)[0]
        self.found["axis"] = found
        self.found.pop("axes", None)
        return found

    def axes(self, shape: Shape, default: int) -> tuple[int, ...]:
        """Every axis this call names, from the end; recorded as ``axes``."""
        named = self.over()
        if named:
            found = tuple(sorted(named_axis(self.op, shape, name) for name in named))
        else:
            found = (from_end(self.op, shape, cast(int, self.attrs.get("axis", default))),)
        for position in found:
            if shape[position].rows:
                raise OpError(
                    "shape",
                    f"`{self.op}` cannot run over `{shape[position]}`: it folds any number of axes",
                )
        self.found["axes"] = found
        return found


def named_axis(op: str, shape: Shape, name: str) -> int:
    places = [k for k, item in enumerate(shape) if item == Poly.symbol(name)]
    if len(places) == 1:
        return places[0] - len(shape)
    if not places and any(item.rows and name in item.symbols() for item in shape):
        raise OpError("shape", f"`{op}` cannot run over `rows {name}`: it folds any number of axes")
    problem = "has no axis" if not places else "has several axes"
    raise OpError("shape", f"`{op}` runs over {name}, but {shape_text(shape)} {problem} {name}")


def from_end(op: str, shape: Shape, position: int) -> int:
    if not -len(shape) <= position < len(shape):
        raise OpError(
            "shape", f"`{op}` names axis {position}, but {shape_text(shape)} has {len(shape)}"
        )
    if position >= 0 and shape and shape[0].rows:
        if position == 0:
            return -len(shape)
        raise OpError(
            "shape",
            f"axis {position} of {shape_text(shape)} depends on how many axes the rows fold",
            f"count from the end: axis = {position - len(shape)}",
        )
    return position if position < 0 else position - len(shape)


def replace_axis(shape: Shape, position: int, *items: Axis) -> Shape:
    """``shape`` with one axis (from the end) replaced by ``items``."""
    k = position + len(shape)
    return shape[:k] + items + shape[k + 1 :]
