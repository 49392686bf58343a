"""The reference of a structure as formulas: LaTeX, one line a definition.

Meant for a ``math`` fence of Markdown, as GitHub and most site generators render it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import Decimal

from frtspec.dims import Poly
from frtspec.ir import expr as ir
from frtspec.ir.lowering import ATOM, POWER, PRODUCT, SUM, UNARY

_FUNCTIONS = {
    "silu": r"\operatorname{SiLU}",
    "gelu_tanh": r"\operatorname{GELU}_{\tanh}",
    "gelu_erf": r"\operatorname{GELU}_{\operatorname{erf}}",
    "relu": r"\operatorname{ReLU}",
    "exp": r"\exp",
    "log": r"\log",
    "sin": r"\sin",
    "cos": r"\cos",
    "tanh": r"\tanh",
    "sigmoid": r"\sigma",
}
_INFIX = {
    "add": ("+", SUM),
    "sub": ("-", SUM),
    "mul": (r"\odot", PRODUCT),
    "matmul": (r"\,", PRODUCT),
}
_NORMS = ("rms_norm", "layer_norm", "native_layer_norm", "native_rms_norm", "l2norm")


def formulas(body: Iterable[ir.Stmt]) -> str:
    """The statements as the rows of one ``aligned`` block."""
    rows = [row for stmt in body for row in _rows(stmt)]
    return "\\begin{aligned}\n" + " \\\\\n".join(rows) + "\n\\end{aligned}"


def name(text: str, index: str | None = None) -> str:
    """A name as a symbol: ``x_after_norm`` is an x with a subscript."""
    head, _, rest = text.partition("_")
    symbol = head if len(head) == 1 else rf"\mathrm{{{head}}}"
    below = [rf"\text{{{rest.replace('_', ' ')}}}"] if rest else []
    below += [index] if index else []
    return symbol + (rf"_{{{','.join(below)}}}" if below else "")


def condition(cond: ir.Cond) -> str:
    """A condition in words: ``activation is gelu and x is given``."""
    match cond:
        case ir.AxisIs(axis=axis, values=values):
            return f"{axis} is {' or '.join(values)}"
        case ir.IsPresent(name=given):
            return f"{given} is given"
        case ir.Not(cond=inner):
            return f"not ({condition(inner)})"
        case ir.AllOf(conds=conds):
            return " and ".join(condition(c) for c in conds)
        case ir.AnyOf(conds=conds):
            return " or ".join(condition(c) for c in conds)


# ---------------------------------------------------------------- statements


def _rows(stmt: ir.Stmt) -> Iterator[str]:
    match stmt:
        case ir.Let():
            yield _let(stmt)
        case ir.Each(index=index, body=body):
            yield rf"&\text{{for each }} {index}:"
            for inner in body:
                yield from (row.replace("&", r"&\quad ", 1) for row in _rows(inner))
        case ir.Scan():
            yield from _scan(stmt)


def _let(stmt: ir.Let) -> str:
    left = name(stmt.name, stmt.index)
    if stmt.kind == "next":
        left = f"{left}'"
    sign = r"\leftarrow" if stmt.rebinds else "="
    row = f"{left} &{sign} {_text(stmt.value, 0)}"
    if stmt.when is not None:
        row += rf" && \text{{{_words(condition(stmt.when))}}}"
        if stmt.otherwise is not None:
            row += rf"\text{{, else }} {_text(stmt.otherwise, 0)}"
    return row


def _scan(stmt: ir.Scan) -> Iterator[str]:
    starts = ", ".join(f"{name(carry)} = {_text(start, 0)}" for carry, start in stmt.carries)
    begin = rf"\text{{ from }} {starts}" if starts else ""
    yield rf"&\text{{for }} {stmt.step} = 0 \ldots {poly(stmt.dim)} - 1{begin}:"
    for inner in stmt.body:
        yield from (row.replace("&", r"&\quad ", 1) for row in _rows(inner))


def _words(text: str) -> str:
    return text.replace("_", r"\_")


# ---------------------------------------------------------------- expressions


def _text(node: ir.Expr, around: int) -> str:
    """``around``: how tightly what stands around the expression binds."""
    match node:
        case ir.Const(value=value):
            return number(value)
        case ir.DimValue(poly=size):
            text = poly(size)
            return text if len(size.terms) == 1 or not around else f"({text})"
        case ir.Ref():
            return r"\varepsilon" if node.name == "eps" else name(node.name, node.index)
        case ir.Select(arms=arms):
            rows = [
                rf"{_text(arm, 0)} & \text{{{_words(' or '.join(values))}}}" for values, arm in arms
            ]
            return r"\begin{cases}" + r" \\ ".join(rows) + r"\end{cases}"
        case ir.Absent(form=form):
            return r"\mathbf{0}" if form == "zeros" else r"\mathbf{1}"
        case ir.EachOf(index=index, value=value):
            return rf"{_text(value, ATOM)},\, {index}"
        case ir.Op():
            return _op(node, around)
        case ir.Invalid():
            return "?"


def _op(node: ir.Op, around: int) -> str:
    if node.op in _INFIX:
        symbol, strength = _INFIX[node.op]
        left, right = node.args
        if node.op == "mul" and isinstance(left, ir.Const | ir.DimValue):
            symbol = r"\cdot"
        text = f"{_text(left, strength)} {symbol} {_text(right, strength + 1)}"
        return _bracketed(text, strength < around)
    special = _SPECIAL.get(node.op)
    if special is not None:
        text, strength = special(node)
        return _bracketed(text, strength < around)
    if node.op in _NORMS:
        return (
            rf"\operatorname{{{_words(node.op)}}}_{{{_over(node)}}}({_args(node.args[:1])})"
            + (rf" \odot {_text(node.args[2], PRODUCT)}" if len(node.args) > 2 else "")
            + (rf" + {_text(node.args[3], SUM)}" if len(node.args) > 3 else "")
        )
    function = _FUNCTIONS.get(node.op, rf"\operatorname{{{_words(node.op)}}}")
    facts = ", ".join(_fact(value) for key, value in node.attrs if key in _SHOWN)
    shown = ", ".join(part for part in (_args(node.args), facts) if part)
    return f"{function}({shown})"


_SHOWN = ("parts", "part", "sizes", "k", "size", "times", "rotary", "position", "format")


def _fact(value: ir.Attr) -> str:
    if isinstance(value, Poly):
        return poly(value)
    if isinstance(value, tuple):
        return "(" + ", ".join(_fact(item) for item in value if isinstance(item, Poly | int)) + ")"
    return str(value) if isinstance(value, int) else rf"\text{{{_words(str(value))}}}"


def _over(node: ir.Op) -> str:
    below = [_text(node.args[1], 0)] if len(node.args) > 1 else []
    axes = node.attr("axes")
    if isinstance(axes, tuple) and len(axes) > 1:
        below.append(rf"\text{{over {len(axes)} axes}}")
    return r",\, ".join(below)


def _args(args: Iterable[ir.Expr]) -> str:
    return ", ".join(_text(arg, 0) for arg in args)


def _fraction(node: ir.Op) -> tuple[str, int]:
    left, right = node.args
    return rf"\frac{{{_text(left, 0)}}}{{{_text(right, 0)}}}", ATOM


def _power(node: ir.Op) -> tuple[str, int]:
    base, exponent = node.args
    return rf"{{{_text(base, ATOM)}}}^{{{_text(exponent, 0)}}}", POWER


def _negative(node: ir.Op) -> tuple[str, int]:
    return f"-{_text(node.args[0], UNARY)}", UNARY


def _linear(node: ir.Op) -> tuple[str, int]:
    x, w, *rest = node.args
    bias = rf" + {_text(rest[0], SUM)}" if rest else ""
    inner = w.args[0] if isinstance(w, ir.Op) and w.op == "transpose" else None
    weight = rf"{_text(w, ATOM)}^\top" if inner is None else _text(inner, ATOM)
    return rf"{_text(x, PRODUCT)} \, {weight}{bias}", SUM if rest else PRODUCT


def _transpose(node: ir.Op) -> tuple[str, int]:
    return rf"{{{_text(node.args[0], ATOM)}}}^\top", ATOM


def _cast(node: ir.Op) -> tuple[str, int]:
    return rf"\operatorname{{round}}_{{{_text(node.args[1], 0)}}}({_text(node.args[0], 0)})", ATOM


def _widen(node: ir.Op) -> tuple[str, int]:
    return rf"\mathrm{{{node.op}}}({_text(node.args[0], 0)})", ATOM


def _contract(node: ir.Op) -> tuple[str, int]:
    over = node.attr("over")
    below = ",".join(str(dim) for dim in over) if isinstance(over, tuple) else ""
    left, right = _text(node.args[0], PRODUCT), _text(node.args[1], ATOM)
    if not below:
        return rf"{left} \odot {right}", PRODUCT
    return rf"\textstyle\sum_{{{below}}} {left} \, {right}", PRODUCT


def _part_of(node: ir.Op) -> tuple[str, int]:
    called, *given = node.args
    return rf"{_text(called, ATOM)}({_args(given)})", ATOM


def _index(node: ir.Op) -> tuple[str, int]:
    items = node.attr("items")
    shown = (
        [_item(item) for item in items if isinstance(item, ir.SliceArg)]
        if isinstance(items, tuple)
        else []
    )
    return rf"{_text(node.args[0], ATOM)}_{{[{', '.join(shown)}]}}", ATOM


def _item(item: ir.SliceArg) -> str:
    if item.kind == "ellipsis":
        return r"\ldots"
    if item.kind == "step":
        return str(item.step)
    if item.kind == "at":
        return "" if item.lo is None else poly(item.lo)
    ends = ("" if end is None else poly(end) for end in (item.lo, item.hi))
    return ":".join(ends)


def _chunk(node: ir.Op) -> tuple[str, int]:
    part, parts = node.attr("part"), node.attr("parts")
    return rf"\operatorname{{chunk}}_{{{part}/{parts}}}({_text(node.args[0], 0)})", ATOM


_SPECIAL = {
    "div": _fraction,
    "pow": _power,
    "neg": _negative,
    "linear": _linear,
    "transpose": _transpose,
    "cast": _cast,
    "f32": _widen,
    "bf16": _widen,
    "fp16": _widen,
    "contract": _contract,
    "part": _part_of,
    "index": _index,
    "chunk": _chunk,
}


def _bracketed(text: str, needed: bool) -> str:
    return rf"\left({text}\right)" if needed else text


def number(value: Decimal) -> str:
    """``1e-6`` as a power of ten, others as they are."""
    sign, digits, exponent = value.normalize().as_tuple()
    if isinstance(exponent, int) and exponent <= -4:
        lead = int("".join(map(str, digits)))
        mantissa = "" if lead == 1 else rf"{lead} \cdot "
        return f"{'-' if sign else ''}{mantissa}10^{{{exponent}}}"
    return str(value)


def poly(value: Poly) -> str:
    """A size as LaTeX."""
    return str(value).replace("**", "^").replace("*", r" \, ").replace("_", r"\_")
