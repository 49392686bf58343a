"""Scales: what stands between a point's values and the codes that a product is handed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from frtspec.diag.source import Span
from frtspec.dims import Axis
from frtspec.ir import decl as ir
from frtspec.ir import expr as irx
from frtspec.ir import words
from frtspec.ir.walk import ops, parts
from frtspec.sema.common import granularity, one_of
from frtspec.sema.context import Context, listing
from frtspec.sema.target import Target
from frtspec.syntax import ast

SCALE, GRAIN, FORMAT, BALANCE = "FRT0402", "FRT0410", "FRT0413", "FRT0412"

PRODUCTS = ("matmul", "linear", "contract")

SETTINGS = ("alpha", "the least factor", "the largest factor")
"""What ``balance`` takes after its point."""


def fitting(
    context: Context,
    what: str,
    format: str,
    grain: ir.Granularity,
    allowed: words.Granularities,
    span: Span,
) -> bool:
    """Whether a format can be had at a granularity; reports where it can't."""
    known = allowed.get(format, {})
    sizes = known.get(grain[0])
    if sizes is not None and (grain[1] is None) == (not sizes) and grain[1] in (*sizes, None):
        return True
    text = f"per {grain[0]}" + ("" if grain[1] is None else f" {grain[1]}")
    ways = [f"per {kind} {size}".rstrip() for kind, of in known.items() for size in of or ("",)]
    help = f"write {' or '.join(ways)}" if ways else None
    context.error(GRAIN, f"{what} in `{format}` can't be had {text}", span, help=help)
    return False


@dataclass
class Scales:
    """Builds the scales of one impl.

    ``packs``: slot -> the pack it is in, None where a pack was reported.
    """

    context: Context
    target: Target
    packs: Mapping[str, ir.Pack] | None
    params: Mapping[str, ir.ImplParam]

    def build(self, nodes: Sequence[ast.ScaleDecl]) -> tuple[ir.Scale, ...]:
        built = [self.scale(node) for node in nodes]
        found = tuple(scale for scale in built if scale is not None)
        self.once_a_point(found)
        return found

    def scale(self, node: ast.ScaleDecl) -> ir.Scale | None:
        call = node.value
        if isinstance(call, ast.ErrorNode):
            return None
        if not isinstance(call, ast.Call) or not call.args:
            message = f"scale `{node.name.id}` does not say what it scales"
            help = "write static(point), or dynamic(point, per row)"
            self.context.error(SCALE, message, call.span, help=help)
            return None
        kind = one_of(self.context, "kind of scale", call.func, words.SCALES)
        point, *rest = [arg.value for arg in call.args]
        if not isinstance(point, ast.Name) or any(arg.name is not None for arg in call.args):
            self.shaped_wrong(call)
            return None
        known = [p.name for p in self.target.points]
        if point.id not in known:
            self.context.unknown("point", point, known)
            return None
        if kind is None:
            return None
        if not self.enters_product(point.id):
            self.context.error(
                SCALE,
                f"`{point.id}` enters no product: nothing is scaled by `{node.name.id}`",
                point.span,
                help="a scale belongs to an operand of @, linear or contract",
            )
        if kind == "balance":
            return self.balance(node, call, point, rest)
        return self.steps(node, call, kind, point, rest)

    def shaped_wrong(self, call: ast.Call) -> None:
        """Reports a call that has other arguments than its kind takes."""
        if call.func.id == "balance":
            message = f"`balance` takes a point, {', '.join(SETTINGS[:2])} and {SETTINGS[2]}"
            help = "write balance(x, alpha, 0.25, 4): numbers, or params of this impl"
        else:
            message = f"`{call.func.id}` takes a point and a granularity"
            help = "write static(x, per tensor), or dynamic(x, int8, per row) with a format"
        self.context.error(SCALE, message, call.span, help=help)

    # ------------------------------------------------------------ static and dynamic

    def steps(
        self,
        node: ast.ScaleDecl,
        call: ast.Call,
        kind: str,
        point: ast.Name,
        rest: Sequence[object],
    ) -> ir.Scale | None:
        named = rest[0] if rest and isinstance(rest[0], ast.Name) else None
        rest = rest[1:] if named else rest
        grains = [item for item in rest if isinstance(item, ast.Granularity)]
        if len(rest) > 1 or len(grains) != len(rest):
            self.shaped_wrong(call)
            return None
        if named is not None:
            format = one_of(self.context, "format", named, words.FORMATS)
            if format is None:
                return None
        else:
            format = self.met_format(point)
        grain: ir.Granularity | None = ("tensor", None)
        if grains:
            grain = granularity(self.context, grains[0], words.GRANULARITIES, SCALE)
        if grain is None:
            return None
        static = kind == "static"
        allowed = words.STATIC_GRANULARITIES if static else words.DYNAMIC_GRANULARITIES
        what = f"a {kind} scale"
        span = grains[0].span if grains else call.span
        if format is None or not fitting(self.context, what, format, grain, allowed, span):
            return None
        return ir.Scale(node.name.id, kind, point.id, format, grain, node.span)

    def met_format(self, point: ast.Name) -> str | None:
        """The format of the packed weights that a point meets; None when it was reported, or
        can't be known because a pack was."""
        if self.packs is None:
            return None
        formats = {pack.format for pack in self.met(point.id)} - {None, *words.PLAIN_FORMATS}
        if len(formats) == 1:
            return next(iter(formats))
        if formats:
            message = f"`{point.id}` meets weights in {listing(sorted(map(str, formats)))}"
        else:
            message = f"`{point.id}` meets no weight that is packed in codes"
        self.context.error(
            FORMAT, message, point.span, help="say its format: dynamic(x, int8, per row)"
        )
        return None

    def met(self, point: str) -> list[ir.Pack]:
        """The packs whose slots a point meets in products."""
        found: list[ir.Pack] = []
        for slot in self.weights_at(point):
            pack = (self.packs or {}).get(slot)
            if pack is not None and pack not in found:
                found.append(pack)
        return found

    def meets_codes(self, scales: Sequence[ir.Scale], format: str) -> bool | None:
        """Whether some product is one of two tensors of codes in a format, with scales that a
        library product takes; None where that can't be known."""
        if self.packs is None:
            return None
        return any(
            pack.format == format and (pack.granularity or ("tensor",))[0] in ("tensor", "channel")
            for scale in scales
            if scale.format == format and scale.granularity[0] in ("tensor", "row")
            for pack in self.met(scale.point)
        )

    def weights_at(self, point: str) -> list[str]:
        """Slots that a point meets in products, in order."""
        names = {point, self.target.aliases().get(point, point)}
        slots = {slot.name for slot in self.target.slots}
        found: list[str] = []
        for op in ops(self.target.body):
            if op.op not in PRODUCTS:
                continue
            operands = [{p.name for p in parts(a) if isinstance(p, irx.Ref)} for a in op.args[:2]]
            for mine, other in (operands, operands[::-1]):
                if mine & names:
                    found += sorted(other & slots)
        return list(dict.fromkeys(found))

    def contracted(self, point: str) -> list[Axis]:
        """The axes that a point's products sum over, from the weights that it meets."""
        met = self.weights_at(point)
        shapes = [slot.shape for slot in self.target.slots if slot.name in met]
        return [shape[-2] for shape in shapes if shape is not None and len(shape) > 1]

    def enters_product(self, point: str) -> bool:
        """Whether a value is an operand of a product, cast or not."""
        names = {point, self.target.aliases().get(point, point)}
        operands = [
            part
            for op in ops(self.target.body)
            if op.op in PRODUCTS
            for arg in op.args
            for part in parts(arg)
        ]
        return any(isinstance(p, irx.Ref) and p.name in names for p in operands)

    # ------------------------------------------------------------ balance

    def balance(
        self, node: ast.ScaleDecl, call: ast.Call, point: ast.Name, rest: Sequence[object]
    ) -> ir.Scale | None:
        if len(rest) != len(SETTINGS):
            self.shaped_wrong(call)
            return None
        settings = [self.setting(item) for item in rest]
        if None in settings:
            return None
        found = tuple(item for item in settings if item is not None)
        self.limits(call, found)
        grain: ir.Granularity = ("channel", None)
        return ir.Scale(node.name.id, "balance", point.id, None, grain, node.span, found)

    def setting(self, node: object) -> Decimal | str | None:
        match node:
            case ast.Number(value=value):
                return value
            case ast.Name() if node.id in self.params:
                self.context.use("param", node.id)
                return node.id
            case ast.Name():
                self.context.unknown("param", node, self.params)
            case ast.ErrorNode():
                pass
            case _:
                span: Span = node.span  # type: ignore[attr-defined]
                self.context.error(BALANCE, "this is neither a number nor a param", span)
        return None

    def limits(self, call: ast.Call, settings: Sequence[Decimal | str]) -> None:
        """Limits that leave room around 1, as written or by the defaults of their params."""
        numbers = [
            self.params[item].default if isinstance(item, str) else item for item in settings
        ]
        alpha, low, high = numbers
        if not 0 <= alpha <= 1:
            message = f"alpha lies between 0 (nothing moves) and 1 (all of it), not at {alpha}"
            self.context.error(BALANCE, message, call.span)
        if not 0 < low <= 1 <= high:
            message = f"the factors lie between {low} and {high}: that leaves no room around 1"
            self.context.error(BALANCE, message, call.span, help="for instance 0.25 and 4")

    # ------------------------------------------------------------ together

    def once_a_point(self, scales: Sequence[ir.Scale]) -> None:
        """A point has one scale of codes, and one balance."""
        first: dict[tuple[str, bool], ir.Scale] = {}
        for scale in scales:
            before = first.setdefault((scale.point, scale.kind == "balance"), scale)
            if before is not scale:
                self.context.error(
                    SCALE,
                    f"`{scale.point}` is scaled twice",
                    scale.span,
                    notes=((before.span, "first here"),),
                    help="leave one of the two out",
                )

    def check_balances(self, scales: Sequence[ir.Scale], names: Mapping[str, ast.Name]) -> None:
        """What a balance takes from an activation goes into every weight that it meets.

        ``names``: pack -> the name it is balanced by, as written.
        """
        known = {scale.name: scale for scale in scales if scale.kind == "balance"}
        for pack in (self.packs or {}).values():
            if pack.balance is not None and pack.balance not in known:
                self.context.unknown("balance", names[pack.name], known)
        for scale in known.values():
            self.check_balance(scale)

    def check_balance(self, scale: ir.Scale) -> None:
        if self.packs is None:
            return
        weights = self.weights_at(scale.point)
        for slot in weights:
            pack = self.packs.get(slot)
            if pack is None or pack.balance != scale.name:
                self.context.error(
                    BALANCE,
                    f"`{scale.point}` is divided by `{scale.name}`, and `{slot}`, which it "
                    "meets, is not multiplied by it",
                    scale.span if pack is None else pack.span,
                    help=f"pack it by quantize(balance({slot}.T, {scale.name}), …)",
                )
        for pack in {id(p): p for p in self.packs.values() if p.balance == scale.name}.values():
            strangers = [slot for slot in pack.slots if slot not in weights]
            if strangers:
                message = f"`{strangers[0]}` meets no `{scale.point}`: it can't be balanced with it"
                self.context.error(BALANCE, message, pack.span)
