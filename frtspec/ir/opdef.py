"""What a row of the op table is, what ops cost, and the lowerings that need code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from frtspec.dims import Poly
from frtspec.ir.expr import Attr, SliceArg
from frtspec.ir.lowering import ATOM, Attrs, Template, Text, attr_text, fill, slice_text
from frtspec.ir.opcall import OpCall
from frtspec.ir.rules import Rule
from frtspec.ir.types import DTYPES, Tensor, ValueType, numel, size_of

ParamKind = Literal["tensor", "value", "number", "dim", "dims", "int", "dtype", "tensors"]
Cost = Callable[[OpCall, Tensor], Poly]


@dataclass(frozen=True)
class OpParam:
    """One positional parameter.

    ``tensor`` a tensor; ``value`` a tensor or a number; ``number`` a Python number;
    ``tensors`` one or more tensors (last). The others become attributes of the same
    name: ``dim`` a size, ``dims`` a parenthesised list of sizes, ``int`` a literal
    whole number, ``dtype`` the name of a dtype.
    """

    name: str
    kind: ParamKind
    optional: bool = False

    @property
    def is_attr(self) -> bool:
        return self.kind in ("dim", "dims", "int", "dtype")


@dataclass(frozen=True)
class OpDef:
    """One op. ``axes``: how many axes it may name with ``over X`` (or one by ``axis = n``)."""

    name: str
    params: tuple[OpParam, ...]
    rule: Rule
    lowering: Template
    flops: Cost
    doc: str
    axes: Literal["none", "one", "many"] = "none"
    strength: int = ATOM
    fixed: tuple[tuple[str, Attr], ...] = ()
    symbol: str | None = None
    revision: int = 1

    @property
    def signature(self) -> str:
        """``rms_norm(x, eps, over …)``"""
        shown = [f"[{p.name}]" if p.optional else p.name for p in self.params]
        if self.axes != "none":
            shown.append("[over …]")
        return f"{self.name}({', '.join(shown)})"

    def lower(self, args: Sequence[Text], attrs: Attrs) -> Text:
        """The Python expression for finished argument texts."""
        return fill(self.lowering, self.strength, args, attrs)


# ---------------------------------------------------------------- costs


def per_element(count: int) -> Cost:
    return lambda call, out: numel(out.shape) * count


def per_input(count: int) -> Cost:
    return lambda call, out: numel(call.tensor(0).shape) * count


def free(call: OpCall, out: Tensor) -> Poly:
    return Poly.const(0)


def product(call: OpCall, out: Tensor) -> Poly:
    return numel(out.shape) * size_of(call.tensor(0).shape[-1]) * 2


def contraction(call: OpCall, out: Tensor) -> Poly:
    total = numel(out.shape) * 2
    for name in call.over():
        total = total * Poly.symbol(name)
    return total


def bytes_moved(args: Sequence[ValueType], out: Tensor, host_bits: int) -> Poly:
    """Bytes an op reads and writes when nothing is fused; ``host_bits`` is the width
    of the host's dtype."""
    total = Poly.const(0)
    for value in (*args, out):
        if isinstance(value, Tensor):
            total = total + tensor_bytes(value, host_bits)
    return total


def tensor_bytes(value: Tensor, host_bits: int) -> Poly:
    """Bytes of one tensor; ``host_bits`` is the width of the host's dtype."""
    return numel(value.shape) * (DTYPES[value.dtype][1] or host_bits) / 8


# ---------------------------------------------------------------- lowerings


def norm_text(name: str) -> Template:
    def text(args: Sequence[Text], attrs: Attrs) -> str:
        shown = [arg.text for arg in args]
        axes = cast(tuple[int, ...], attrs.get("axes", (-1,)))
        if axes != (-1,):
            shown.append(f"dim=({attr_text(axes)}{',' if len(axes) == 1 else ''})")
        return f"ops.{name}({', '.join(shown)})"

    return text


def reduce_text(name: str) -> Template:
    def text(args: Sequence[Text], attrs: Attrs) -> str:
        axes = cast(tuple[int, ...], attrs["axes"])
        dim = attr_text(axes) if len(axes) == 1 else f"({attr_text(axes)})"
        return f"{args[0].within(ATOM)}.{name}(dim={dim})"

    return text


def cat_text(args: Sequence[Text], attrs: Attrs) -> str:
    return f"torch.cat([{', '.join(arg.text for arg in args)}], dim={attrs['axis']})"


def tuple_text(method: str) -> Template:
    def text(args: Sequence[Text], attrs: Attrs) -> str:
        sizes = cast(tuple[Poly, ...], attrs["sizes"])
        inner = attr_text(sizes)
        if method == "reshape":
            return f"{args[0].within(ATOM)}.reshape({inner})"
        if method == "unflatten":  # torch types the function, not the method; split likewise
            sizes_text = f"({inner}{',' if len(sizes) == 1 else ''})"
            return f"torch.unflatten({args[0].text}, {attrs['axis']}, {sizes_text})"
        return f"torch.split({args[0].text}, [{inner}], dim={attrs['axis']})[{attrs['part']}]"

    return text


def transpose_text(args: Sequence[Text], attrs: Attrs) -> str:
    pair = cast(tuple[int, ...], attrs.get("pair", (-2, -1)))
    if set(pair) == {-1, -2}:
        return f"{args[0].within(ATOM)}.mT"
    return f"{args[0].within(ATOM)}.transpose({attr_text(pair)})"


def index_text(args: Sequence[Text], attrs: Attrs) -> str:
    items = cast(tuple[SliceArg, ...], attrs["items"])
    return f"{args[0].within(ATOM)}[{', '.join(slice_text(item) for item in items)}]"


def linear_text(args: Sequence[Text], attrs: Attrs) -> str:
    return f"nnf.linear({', '.join(arg.text for arg in args)})"


def rope_text(name: str) -> Template:
    def text(args: Sequence[Text], attrs: Attrs) -> str:
        shown = [arg.text for arg in args] + [f"rotary={attr_text(attrs['rotary'])}"]
        if attrs.get("heads"):
            shown.append(f"heads={attrs['heads']}")
        return f"ops.{name}({', '.join(shown)})"

    return text


def part_text(args: Sequence[Text], attrs: Attrs) -> str:
    called = f"{args[0].text}({', '.join(arg.text for arg in args[1:])})"
    return called if attrs.get("result") is None else f"{called}[{attrs['result']}]"


def cast_text(args: Sequence[Text], attrs: Attrs) -> str:
    return f"{args[0].within(ATOM)}.{_CAST_METHODS[cast(str, attrs['dtype'])]}()"


_CAST_METHODS = {"f32": "float", "bf16": "bfloat16", "fp16": "half"}
