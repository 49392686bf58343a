"""The ``torch`` rung: the same arithmetic with library ops in place of products.

A pack of several weights that all meet one operand is one product, split afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from frtspec.codegen.arithmetic import PRODUCTS, Emulation, Line, cast, root_of
from frtspec.codegen.flowsrc import Raw
from frtspec.codegen.formats import per, quantised
from frtspec.codegen.names import DTYPES, free
from frtspec.codegen.unsupported import Unsupported
from frtspec.ir.decl import Pack, Rung
from frtspec.ir.expr import Each, Expr, Let, Op, Ref, Stmt
from frtspec.ir.walk import exprs_of, parts, statements


@dataclass(frozen=True)
class _Joint:
    """One product for a whole pack. ``lets``: result name of each slot, in pack order."""

    pack: Pack
    point: str
    lets: tuple[str, ...]
    loop: str | None


@dataclass
class Lowered(Emulation):
    """Rewrites a cut for one ``torch`` rung."""

    rung: Rung = field(kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.lower = dict(self.rung.lower)
        self.joints = [j for pack in self.impl.packs if (j := self._joint(pack)) is not None]
        self.products = {name: joint for joint in self.joints for name in joint.lets}

    @property
    def products_name(self) -> str:
        """The local that holds the parts of a repeated pack's product."""
        return free("products", self.used)

    # ------------------------------------------------------------ joint products

    def _joint(self, pack: Pack) -> _Joint | None:
        """Whether one product serves every slot of a pack: each slot meets the same operand
        once, and the product is all there is to the definition it stands in."""
        if not self.joint(pack) or self._library(pack) is None:
            return None
        uses = [use for stmt in self.cut.body for use in self._uses(stmt, pack)]
        slots = [slot for slot, _, _, _ in uses]
        points = {point for _, point, _, _ in uses}
        loops = {loop for _, _, _, loop in uses}
        if sorted(slots) != sorted(pack.slots) or len(points) != 1 or None in points:
            return None
        names = {slot: name for slot, _, name, _ in uses}
        point = next(iter(points))
        if point is None or None in names.values() or len(loops) != 1:
            return None
        lets = tuple(name for slot in pack.slots if (name := names[slot]) is not None)
        return _Joint(pack, point, lets, next(iter(loops)))

    def _uses(self, stmt: Stmt, pack: Pack) -> list[tuple[str, str | None, str | None, str | None]]:
        """Products with the pack's slots: (slot, scaled operand, the definition it is, loop)."""
        out = []
        loop = stmt.index if isinstance(stmt, Each) else None
        for inner in statements([stmt]):
            for whole in exprs_of(inner):
                for part in parts(whole):
                    if isinstance(part, Op) and part.op in PRODUCTS:
                        out += self._use(inner, whole, part, pack, loop)
        return out

    def _use(
        self, stmt: Stmt, whole: Expr, product: Op, pack: Pack, loop: str | None
    ) -> list[tuple[str, str | None, str | None, str | None]]:
        right = root_of(product.args[1])
        if not isinstance(right, Ref) or right.name not in pack.slots:
            return []
        point = self.scaled(product.args[0])
        plain = isinstance(stmt, Let) and stmt.when is None and root_of(whole) is product
        name = stmt.name if isinstance(stmt, Let) and plain else None
        return [(right.name, point, name, loop)]

    def _library(self, pack: Pack) -> str | None:
        """The library product for a pack's weights on this rung, or None."""
        if self.lower.get("matmul", self.lower.get("linear")) != "scaled_mm":
            return None
        form = quantised(pack)
        return None if form is None else form.scaled_mm

    # ------------------------------------------------------------ statements

    def statement(self, stmt: Stmt) -> list[Line]:
        if isinstance(stmt, Let) and stmt.name in self.products and stmt.when is None:
            joint = self.products[stmt.name]
            if joint.loop is None and self._is_product(stmt, joint):
                return self._first(joint)
        if isinstance(stmt, Each):
            ahead = [j for j in self.joints if j.loop is not None and self._in_loop(stmt, j)]
            lines = [line for joint in ahead for line in self._ahead(joint)]
            return [*lines, *super().statement(stmt)]
        return super().statement(stmt)

    def _is_product(self, let: Let, joint: _Joint) -> bool:
        root = root_of(let.value)
        if not isinstance(root, Op) or root.op not in PRODUCTS:
            return False
        right = root_of(root.args[1])
        return isinstance(right, Ref) and right.name in joint.pack.slots

    def _in_loop(self, each: Each, joint: _Joint) -> bool:
        return any(isinstance(s, Let) and s.name in joint.lets for s in each.body)

    def _first(self, joint: _Joint) -> list[Line]:
        """The one product, where the first of its parts was; nothing for the others."""
        if joint.pack.name in self.ready:
            return []
        self.ready.add(joint.pack.name)
        dtype, rounded = self._joint_dtype(joint)
        product = self._product_text(joint.pack, joint.point, dtype)
        back = ".float()" if rounded else ""
        names = ", ".join(joint.lets)
        split = f"torch.split({product}{back}, self.{joint.pack.name}_rows, dim=-1)"
        quantise = self._quantise(joint)
        lines: list[Line] = [*quantise, Raw((f"{names} = {split}",))]
        if dtype == "f32":
            lines += [self._stored_let(name, joint) for name in joint.lets if name in self.stores]
        return [*lines, *self._written_lets(joint)]

    def _written_lets(self, joint: _Joint) -> list[Let]:
        """Parts of a joint product that are results are rounded to what is written."""
        out = self.impl.numerics.out
        names = [n for n in joint.lets if out is not None and self.rounds_in_place(n)]
        span = joint.pack.span
        return [
            Let(
                "let",
                n,
                None,
                cast(out or "f32", Ref(n, "value", None, span)),
                None,
                None,
                True,
                span,
            )
            for n in names
        ]

    def _ahead(self, joint: _Joint) -> list[Line]:
        """The one product of a repeated pack, before the loop over its parts."""
        product = self._product_text(joint.pack, joint.point, "f32")
        rows = f"self.{joint.pack.name}_rows"
        line = f"{self.products_name} = torch.split({product}, {rows}, dim=-1)"
        return [*self._quantise(joint), Raw((line,))]

    def _quantise(self, joint: _Joint) -> list[Line]:
        ref = Ref(joint.point, "quantised", None, joint.pack.span)
        if joint.point in self.ready:
            return []
        self.ready.add(joint.point)
        return [self.quantised_point(ref)]

    def _stored_let(self, name: str, joint: _Joint) -> Let:
        span = joint.pack.span
        value = self.stored(name, Ref(name, "value", None, span))
        return Let("let", name, None, value, None, None, True, span)

    def _joint_dtype(self, joint: _Joint) -> tuple[str, bool]:
        """The dtype one product is written in, and whether it is read back as float32."""
        stores = {self.stores.get(name) for name in joint.lets}
        single = all(len(self.defined[name]) == 1 for name in joint.lets)
        if len(stores) == 1 and single and (dtype := next(iter(stores))) not in (None, "f32"):
            return dtype or "f32", True
        return "f32", False

    # ------------------------------------------------------------ expressions

    def quantised_point(self, ref: Ref) -> Line:
        """The point's codes where its weights meet them in a library product, else what is
        left of it in float32."""
        packs = [pack for pack in self.impl.packs if self._meets(ref.name, pack)]
        if packs and all(self._library(pack) for pack in packs):
            return self._point_let(ref, "codes", self.scales[ref.name])
        return super().quantised_point(ref)

    def _meets(self, point: str, pack: Pack) -> bool:
        uses = [use for stmt in self.cut.body for use in self._uses(stmt, pack)]
        return any(operand == point for _, operand, _, _ in uses)

    def product(self, op: Op) -> Expr:
        right = root_of(op.args[1])
        point = self.scaled(op.args[0])
        pack = self.packs.get(right.name) if isinstance(right, Ref) else None
        if pack is None or not isinstance(right, Ref) or self._library(pack) is None or not point:
            return super().product(op)
        if op.op == "contract" or pack.transposed != (op.op == "matmul"):
            raise Unsupported(
                f"`pack {pack.name}`, not stored out_in for a library product,", op.span
            )
        joint = next((j for j in self.joints if j.pack is pack), None)
        if joint is not None and joint.loop is not None:
            return Ref(self.products_name, "value", joint.loop, op.span)
        if per(pack) != "tensor" and self.joint(pack):
            raise Unsupported(f"`pack {pack.name}`, per channel and used in parts,", op.span)
        operand = Ref(point, "quantised", None, op.span)
        kind = "codes_of" if self.joint(pack) else "held"
        weight = Ref(right.name if self.joint(pack) else pack.name, kind, right.index, right.span)
        attrs = (("pack", pack.name), ("scale", self.scales[point].name), ("dtype", "f32"))
        return Op("scaled_mm", (operand, weight), attrs, op.span)

    def before(self, stmts: Sequence[Line]) -> list[Line]:
        out = super().before(stmts)
        for ref in (r for s in stmts for r in _code_refs(s)):
            pack = self.packs[ref.name]
            key = f"codes {pack.name}"
            if key not in self.ready:
                self.ready.add(key)
                text = f"torch.split(self.{pack.name}, self.{pack.name}_rows)"
                out.append(Raw((f"{', '.join(pack.slots)} = {text}",)))
        return out

    def rounded(self, let: Let, value: Expr) -> Expr:
        """Let a product write the dtype that its value is rounded to at once."""
        return _written(super().rounded(let, value))

    def _product_text(self, pack: Pack, point: str, dtype: str) -> str:
        scale = self.scales[point].name
        return product_text(
            self.quantised_name(point), f"self.{pack.name}", scale, pack.name, dtype
        )


def product_text(codes: str, weight: str, scale: str, pack: str, dtype: str) -> str:
    """``numerics.scaled_mm(x_q, self.down, self.in_s, self.down_scale)``."""
    out = "" if dtype == "bf16" else f", out_dtype={DTYPES[dtype]}"
    return f"numerics.scaled_mm({codes}, {weight}, self.{scale}, self.{pack}_scale{out})"


def _written(expr: Expr) -> Expr:
    """``product.bfloat16()`` is a product written in bfloat16; casts around stay."""
    if isinstance(expr, Op) and expr.op in ("f32", "bf16", "fp16"):
        inner = _written(expr.args[0])
        if isinstance(inner, Op) and inner.op == "scaled_mm" and inner.attr("dtype") == "f32":
            if expr.op == "f32":
                return inner
            return replace(inner, attrs=(*inner.attrs[:2], ("dtype", expr.op)))
        return cast(expr.op, inner)
    return expr


def _code_refs(line: Line) -> list[Ref]:
    if isinstance(line, Raw):
        return []
    return [
        part
        for stmt in statements([line])
        for whole in exprs_of(stmt)
        for part in parts(whole)
        if isinstance(part, Ref) and part.kind == "codes_of"
    ]
