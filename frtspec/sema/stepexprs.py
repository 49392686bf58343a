"""Expressions of a rung's own steps: entries of its package, and ops between them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from frtspec.diag.source import Span
from frtspec.diag.suggest import closest
from frtspec.dims import DimError, Poly
from frtspec.ir import expr as ir
from frtspec.ir import words
from frtspec.ir.opcall import OpCall
from frtspec.ir.ops import CALLABLE, OPS
from frtspec.ir.stepops import LITERALS, OWNERS, STEP_OPS
from frtspec.ir.types import SCALAR, UNKNOWN, OpError, Tensor, ValueType
from frtspec.sema.exprs import Exprs
from frtspec.syntax import ast

STEP, NAME, OPERAND, WRITES, AT_BIND, AXIS, TYPE = (
    "FRT0440",
    "FRT0441",
    "FRT0445",
    "FRT0446",
    "FRT0447",
    "FRT0448",
    "FRT0449",
)
_FORMS = (ast.Granularity, ast.OverDim, ast.EachExpr)


@dataclass
class StepExprs(Exprs):
    """Builds the values of steps, and types what ops of the dataflow make of known shapes.

    ``types``: of what is known by name. ``owned``: lets that hold a tensor of the call's own.
    ``joint``: packs that hold the rows of several outputs; ``two_level``: packs with a scale of
    the whole tensor. ``at_bind``: the values are prepared, before there is a call.
    """

    types: dict[str, ValueType] = field(default_factory=dict)
    owned: set[str] = field(default_factory=set)
    joint: frozenset[str] = frozenset()
    two_level: frozenset[str] = frozenset()
    static: Mapping[str, str | None] = field(default_factory=dict)
    at_bind: bool = False
    alias: dict[str, str] = field(default_factory=dict)
    """Point -> the input that it names."""

    def value(self, node: object) -> ir.Expr:
        """The value of a step, with the axes of its ops settled."""
        built = self.expr(node)
        if isinstance(built, ir.Invalid):
            return built
        return self.settled(built)[0]

    # ------------------------------------------------------------ names and literals

    def expr(self, node: object, depth: int = 0) -> ir.Expr:
        if isinstance(node, ast.String):
            return ir.Ref(node.value, "text", None, node.span)
        return super().expr(node, depth)

    def _name(self, name: ast.Name) -> ir.Expr:
        symbol = self.scope.find(name.id)
        if symbol is None and name.id in LITERALS:
            return ir.Ref(name.id, "literal", None, name.span)
        if symbol is None:
            known = [n for n, s in self.scope.names.items() if s.kind not in ("variant", "index")]
            self.context.unknown("name", name, known, code=NAME)
            return ir.Invalid(name.span)
        if symbol.kind in ("dim", "variant", "index", "part"):
            return super()._no_operand(name, symbol)
        self.context.use(symbol.kind, name.id)
        self.touched.add(name.id)
        if self.at_bind and symbol.kind in ("input", "value", "reference"):
            return self.bad(
                AT_BIND,
                f"`{name.id}` is there at a call only, and this is prepared before",
                name.span,
                "prepare from slots, packs, scales, params and dims",
            )
        return ir.Ref(self.alias.get(name.id, name.id), symbol.kind, None, name.span)

    def _field(self, node: ast.Field, depth: int) -> ir.Expr:
        base, of = node.base, node.name.id
        symbol = self.scope.find(base.id) if isinstance(base, ast.Name) else None
        if not isinstance(base, ast.Name) or symbol is None or symbol.kind != "pack":
            return super()._field(node, depth)
        if of == "T":
            return super()._field(node, depth)
        self.context.use("pack", base.id)
        if of == "scale" or (of == "tensor_scale" and base.id in self.two_level):
            return ir.Ref(base.id, f"pack_{of}", None, node.span)
        return self.bad(
            NAME,
            f"pack `{base.id}` has no `{of}`",
            node.name.span,
            f"write {base.id}.scale; a pack in nvfp4 has a tensor_scale as well",
        )

    # ------------------------------------------------------------ calls

    def _call(self, node: ast.Call, depth: int) -> ir.Expr:
        name = node.func.id
        if name == "split" and len(node.args) == 2 and isinstance(node.args[1].value, ast.Field):
            return self._split_rows(node, node.args[1].value, depth)
        if name == "updates":
            return self.bad(
                WRITES,
                "`updates` stands around an argument of an entry",
                node.span,
                "entry(updates(r), …)",
            )
        if name in STEP_OPS and name != "split":
            return self._own(node, depth)
        if name in CALLABLE:
            return super()._call(node, depth)
        return self._entry(node, depth)

    def _entry(self, node: ast.Call, depth: int) -> ir.Expr:
        near = closest(node.func.id, (*CALLABLE, *STEP_OPS))
        if near is not None and "_" not in node.func.id.removeprefix(near):
            self.context.error(
                STEP,
                f"`{node.func.id}` is no op, and as an entry it looks like a misspelt one",
                node.func.span,
                help=f"did you mean `{near}`?",
            )
            return ir.Invalid(node.span)
        args: list[ir.Expr] = []
        keywords: list[str] = []
        for arg in node.args:
            if isinstance(arg.value, _FORMS):
                self.bad(STEP, "this is no argument of an entry", arg.span)
                return ir.Invalid(node.span)
            if arg.name is None and any(keywords):
                self.bad(STEP, "an argument without a name stands behind one with a name", arg.span)
            if arg.name is not None and arg.name.id in keywords:
                self.bad(STEP, f"argument `{arg.name.id}` is given twice", arg.span)
            args.append(self._handed(arg.value, depth + 1))
            keywords.append("" if arg.name is None else arg.name.id)
        if any(isinstance(arg, ir.Invalid) for arg in args):
            return ir.Invalid(node.span)
        attrs = (("keywords", tuple(keywords)), ("name", node.func.id))
        return ir.Op("entry", tuple(args), attrs, node.span)

    def _handed(self, value: ast.Expr, depth: int) -> ir.Expr:
        """An argument of an entry: ``updates(r)`` says that the entry writes into it."""
        match value:
            case ast.Call(func=ast.Name(id="updates"), args=(ast.Arg(value=ast.Name() as name),)):
                built = self.expr(name, depth)
                if isinstance(built, ir.Ref) and name.id not in self.owned:
                    return self.bad(
                        WRITES,
                        f"an entry would write into `{name.id}`, which the call does not own",
                        value.span,
                        f"let it write into a copy: let r = clone({name.id})",
                    )
                return self.op("updates", [built], value.span)
            case ast.Call(func=ast.Name(id="updates"), args=(ast.Arg(value=ast.Call() as made),)):
                built = self.expr(made, depth)
                if isinstance(built, ir.Invalid) or owns(built):
                    return self.op("updates", [built], value.span)
                return self._own(value, depth)
            case _:
                return self.expr(value, depth)

    def op(self, op: str, args: object, span: Span, **attrs: ir.Attr) -> ir.Expr:
        if op in OPS and op not in STEP_OPS or op == "split":
            return super().op(op, args, span, **attrs)  # type: ignore[arg-type]
        given: list[ir.Expr] = list(args)  # type: ignore[call-overload]
        if any(isinstance(arg, ir.Invalid) for arg in given):
            return ir.Invalid(span)
        return ir.Op(op, tuple(given), tuple(sorted(attrs.items())), span)

    # ------------------------------------------------------------ ops of steps alone

    def _wrong(self, node: ast.Call) -> ir.Expr:
        how, does = STEP_OPS[node.func.id]
        return self.bad(
            OPERAND, f"this is not how `{node.func.id}` is written", node.span, f"{how}: {does}"
        )

    def _own(self, node: ast.Call, depth: int) -> ir.Expr:
        name = node.func.id
        values = [arg.value for arg in node.args if arg.name is None]
        wanted = {"expand": 2, "zeros": 2, "ones": 2, "quantize": 3}.get(name, 1)
        if len(values) != len(node.args) or len(values) != wanted:
            return self._wrong(node)
        if name == "quantize":
            return self._quantize(node, values, depth)
        if name in ("zeros", "ones"):
            sizes = self._sizes(values[0])
            dtype = values[1]
            if not isinstance(dtype, ast.Name) or dtype.id not in ("f32", "bf16", "fp16", "int32"):
                return self._wrong(node)
            return (
                ir.Invalid(node.span)
                if sizes is None
                else self.op(name, [], node.span, sizes=sizes, dtype=dtype.id)
            )
        if name == "number" and not self.at_bind:
            help = "prepare it: prepare alpha = number(…)"
            return self.bad(AT_BIND, "reading a number waits for the device", node.span, help)
        inner = self.expr(values[0], depth + 1)
        if name == "expand":
            sizes = self._sizes(values[1])
            return (
                ir.Invalid(node.span)
                if sizes is None
                else self.op(name, [inner], node.span, sizes=sizes)
            )
        if name == "swizzled" and not self._blocks(inner):
            return self._wrong(node)
        if name == "values" and not (isinstance(inner, ir.Invalid) or _is_pack(inner)):
            return self._wrong(node)
        return self.op(name, [inner], node.span)

    def _blocks(self, inner: ir.Expr) -> bool:
        """Whether a value is the scales of a pack's blocks."""
        if isinstance(inner, ir.Invalid):
            return True
        of_pack = isinstance(inner, ir.Ref) and inner.kind == "pack_scale"
        return of_pack and isinstance(inner, ir.Ref) and inner.name in self.two_level

    def _sizes(self, node: object) -> tuple[Poly, ...] | None:
        items = node.items if isinstance(node, ast.Tuple_) else (node,)
        sizes = [self.sizes.poly(item) for item in items]
        return None if None in sizes else tuple(size for size in sizes if size is not None)

    def _quantize(self, node: ast.Call, values: Sequence[object], depth: int) -> ir.Expr:
        tensor, format, scale = values
        if not isinstance(format, ast.Name) or not isinstance(scale, ast.Name):
            return self._wrong(node)
        symbol = self.scope.find(scale.id)
        if symbol is None or symbol.kind != "scale":
            scales = [n for n, s in self.scope.names.items() if s.kind == "scale"]
            self.context.unknown("scale", scale, scales, code=NAME)
            return ir.Invalid(node.span)
        self.context.use("scale", scale.id)
        if format.id not in words.FORMATS:
            self.context.unknown("format", format, words.FORMATS, code="FRT0207")
            return ir.Invalid(node.span)
        if scale.id not in self.static:
            return self.bad(
                OPERAND,
                f"scale `{scale.id}` is not fixed: it is taken at each call",
                scale.span,
                "quantise by the package's own entry, or write the rung as one `call entry (…)`",
            )
        if self.static[scale.id] not in (None, format.id):
            message = f"scale `{scale.id}` is one of codes in {self.static[scale.id]}"
            return self.bad(OPERAND, message, format.span, "quantise in that format")
        inner = self.expr(tensor, depth + 1)
        held = ir.Ref(scale.id, "scale", None, scale.span)
        return self.op("codes", [inner, held], node.span, scale=scale.id, format=format.id)

    def _split_rows(self, node: ast.Call, rows: ast.Field, depth: int) -> ir.Expr:
        inner = self.expr(node.args[0].value, depth + 1)
        base = rows.base
        if not isinstance(base, ast.Name) or rows.name.id != "rows" or base.id not in self.joint:
            return self._wrong(node)
        self.context.use("pack", base.id)
        return self.op("split_rows", [inner], node.span, pack=base.id)

    # ------------------------------------------------------------ types

    def settled(self, expr: ir.Expr) -> tuple[ir.Expr, ValueType]:
        """The expression with what typing finds out about axes, and its type."""
        match expr:
            case ir.Const() | ir.DimValue():
                return expr, SCALAR
            case ir.Ref(name=name, kind=kind):
                if kind in ("param", "literal", "text"):
                    return expr, SCALAR
                return expr, self.types.get(name, UNKNOWN) if not kind.startswith(
                    "pack"
                ) else UNKNOWN
            case ir.Select(arms=arms):
                built = [(values, *self.settled(arm)) for values, arm in arms]
                kinds = {type_ for _, _, type_ in built}
                made = replace(expr, arms=tuple((values, arm) for values, arm, _ in built))
                return made, kinds.pop() if len(kinds) == 1 else UNKNOWN
            case ir.EachOf():
                return expr, UNKNOWN
            case ir.Op():
                return self._op_settled(expr)
            case _:
                return expr, UNKNOWN

    def _op_settled(self, op: ir.Op) -> tuple[ir.Expr, ValueType]:
        pairs = [self.settled(arg) for arg in op.args]
        made = replace(op, args=tuple(expr for expr, _ in pairs))
        types = tuple(type_ for _, type_ in pairs)
        if op.op not in OPS:
            return made, self._own_type(op, types)
        if UNKNOWN in types:
            return self._unseen(made), UNKNOWN
        call = OpCall(op.op, types, dict(op.attrs))
        try:
            result = OPS[op.op].rule(call)
        except (OpError, DimError) as error:
            help = error.help if isinstance(error, OpError) else None
            self.context.error(TYPE, str(error), op.span, help=help)
            return ir.Invalid(op.span), UNKNOWN
        return replace(made, attrs=tuple(sorted((dict(op.attrs) | call.found).items()))), result

    def _own_type(self, op: ir.Op, types: tuple[ValueType, ...]) -> ValueType:
        match op.op:
            case "contiguous" | "clone" | "empty_like":
                return types[0]
            case "int32" if isinstance(types[0], Tensor):
                return Tensor(types[0].shape, "int32")
            case "zeros" | "ones":
                return Tensor(op.attr("sizes"), str(op.attr("dtype")))  # type: ignore[arg-type]
            case "expand" if isinstance(types[0], Tensor):
                return Tensor(op.attr("sizes"), types[0].dtype)  # type: ignore[arg-type]
            case "codes" if isinstance(types[0], Tensor):
                return Tensor(types[0].shape, str(op.attr("format")))
            case "number":
                return SCALAR
            case _:
                return UNKNOWN

    def _unseen(self, op: ir.Op) -> ir.Expr:
        """An op on a value whose shape is not known: the spec has to say which axis it means."""
        row, attrs = OPS[op.op], dict(op.attrs)
        axis = attrs.get("axis")
        found: dict[str, ir.Attr] = {}
        if op.op == "transpose" and "first" in attrs:
            found["pair"] = (int(str(attrs["first"])), int(str(attrs["second"])))
        elif op.op in ("transpose", "rms_norm", "layer_norm", "l2norm") and "over" not in attrs:
            found = {} if axis is None else {"axes": (int(str(axis)),)}
        elif op.op in ("cat", "softmax", "unflatten") and "over" not in attrs:
            found["axis"] = (0 if op.op == "cat" else -1) if axis is None else axis
        elif row.axes != "none" and (axis is None or "over" in attrs) or op.op.startswith("rope"):
            self.context.error(
                AXIS,
                f"`{op.op}` does not say which axis it means: what it gets has no shape here",
                op.span,
                help="count it from the end: axis = -1",
            )
            return ir.Invalid(op.span)
        elif row.axes == "many" and axis is not None:
            found["axes"] = (int(str(axis)),)
        return replace(op, attrs=tuple(sorted((attrs | found).items())))


def _is_pack(value: ir.Expr) -> bool:
    return isinstance(value, ir.Ref) and value.kind == "pack"


def owns(value: ir.Expr) -> bool:
    """Whether a value is a tensor of the call's own."""
    return isinstance(value, ir.Op) and value.op in OWNERS
