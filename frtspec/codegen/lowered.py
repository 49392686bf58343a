"""The ``torch`` rung: the same arithmetic with library ops in place of products.

A product of two tensors of codes is one library call (``scaled_mm``, ``int8_mm``). Under
``bf16_mm`` it is torch's own product in bfloat16, packs read back at each call. A pack of
several weights that all meet one operand is one product, split afterwards. Attention and the
gated delta rule are one call each (``fused``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from frtspec.codegen.arithmetic import PRODUCTS, Emulation, Line
from frtspec.codegen.exprsrc import rebuilt
from frtspec.codegen.flowsrc import Raw
from frtspec.codegen.formats import per, quantised
from frtspec.codegen.fused import fused
from frtspec.codegen.names import DTYPES, free
from frtspec.codegen.operands import cast, root_of, weight_of
from frtspec.codegen.unsupported import Unsupported
from frtspec.ir.decl import Pack, Rung
from frtspec.ir.expr import Each, Expr, Let, Op, Ref, Stmt
from frtspec.ir.walk import exprs_of, parts, refs, statements

HALF = "bf16_mm"
"""The lowering whose operands are bfloat16 numbers and no codes."""


@dataclass(frozen=True)
class _Use:
    """A product with a pack's slot. ``operand``: the value it meets, where that has a name;
    ``name``: the definition that is nothing but this product; ``loop``: the ``each`` around."""

    op: str
    slot: str
    operand: str | None
    name: str | None
    loop: str | None


@dataclass(frozen=True)
class _Joint:
    """One product for a whole pack. ``lets``: result name of each slot, in pack order;
    ``target``: the lowering it runs by."""

    pack: Pack
    operand: str
    lets: tuple[str, ...]
    loop: str | None
    target: str


@dataclass
class Lowered(Emulation):
    """Rewrites a cut for one ``torch`` rung."""

    rung: Rung = field(kw_only=True)

    def __post_init__(self) -> None:
        self.cut = fused(self.cut, self.impl, self.rung)
        super().__post_init__()
        self.lower = dict(self.rung.lower)
        self.joints = [j for pack in self.impl.packs if (j := self._joint(pack)) is not None]
        self.products = {name: joint for joint in self.joints for name in joint.lets}

    @property
    def products_name(self) -> str:
        """The local that holds the parts of a repeated pack's product."""
        return free("products", self.used)

    def target(self, op: str, pack: Pack | None, operand: str | None) -> str | None:
        """The lowering that a product runs by; None where it stays plain float32."""
        target = self.lower.get(op)
        if target is None:
            return None
        if target == HALF:  # without packs, the form is its products
            return target if pack is not None or not self.impl.packs else None
        scale = self.steps.get(operand or "")
        form = None if pack is None else quantised(pack)
        if form is None or pack is None or scale is None or scale.format != pack.format:
            return None
        return target if target in form.products else None

    # ------------------------------------------------------------ joint products

    def _joint(self, pack: Pack) -> _Joint | None:
        """Whether one product serves every slot of a pack: each slot meets the same operand
        once, and the product is all there is to the definition it stands in."""
        if not self.joint(pack):
            return None
        uses = self._uses(pack)
        operands = {use.operand for use in uses}
        loops = {use.loop for use in uses}
        if sorted(use.slot for use in uses) != sorted(pack.slots) or len(operands) != 1:
            return None
        operand = next(iter(operands))
        targets = {self.target(use.op, pack, operand) for use in uses}
        target = next(iter(targets))
        if len(targets) != 1 or target is None or operand is None or len(loops) != 1:
            return None
        names = {use.slot: use.name for use in uses}
        if None in names.values():
            return None
        lets = tuple(name for slot in pack.slots if (name := names[slot]) is not None)
        return _Joint(pack, operand, lets, next(iter(loops)), target)

    def _uses(self, pack: Pack) -> list[_Use]:
        out: list[_Use] = []
        for stmt in self.cut.body:
            loop = stmt.index if isinstance(stmt, Each) else None
            for inner in statements([stmt]):
                for whole in exprs_of(inner):
                    products = [p for p in parts(whole) if isinstance(p, Op) and p.op in PRODUCTS]
                    found = (self._use(inner, whole, op, pack, loop) for op in products)
                    out += [use for use in found if use is not None]
        return out

    def _use(
        self, stmt: Stmt, whole: Expr, product: Op, pack: Pack, loop: str | None
    ) -> _Use | None:
        right = self.weight(product)
        if right is None or right.name not in pack.slots:
            return None
        plain = isinstance(stmt, Let) and stmt.when is None and root_of(whole) is product
        alone = plain and len(product.args) == 2
        name = stmt.name if isinstance(stmt, Let) and alone else None
        return _Use(product.op, right.name, self.operand_name(product), name, loop)

    def weight(self, product: Op) -> Ref | None:
        """The slot on the right of a product, transposed or not."""
        return weight_of(product.args[1])

    def operand_name(self, product: Op) -> str | None:
        """What stands on the left of a product, where it has one name and one definition."""
        point = self.scaled(product.args[0])
        if point is not None:
            return point
        root = root_of(product.args[0])
        if not isinstance(root, Ref) or root.index is not None:
            return None
        once = root.name in self.cut.sources or len(self.defined.get(root.name, ())) == 1
        return root.name if once and root.kind != "over" else None

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
        right = self.weight(root)
        return right is not None and right.name in joint.pack.slots

    def _in_loop(self, each: Each, joint: _Joint) -> bool:
        return any(isinstance(s, Let) and s.name in joint.lets for s in each.body)

    def _first(self, joint: _Joint) -> list[Line]:
        """The one product, where the first of its parts was; nothing for the others."""
        if joint.pack.name in self.ready:
            return []
        self.ready.add(joint.pack.name)
        dtype, rounded = self._joint_dtype(joint)
        product = self._product_text(joint, dtype)
        back = ".float()" if rounded else ""
        names = ", ".join(joint.lets)
        split = f"torch.split({product}{back}, self.{joint.pack.name}_rows, dim=-1)"
        lines: list[Line] = [*self._quantise(joint), Raw((f"{names} = {split}",))]
        if dtype == "f32":
            lines += [self._stored_let(name, joint) for name in joint.lets if name in self.stores]
        return [*lines, *self._written_lets(joint)]

    def _written_lets(self, joint: _Joint) -> list[Let]:
        """Parts of a joint product that are results are rounded to what is written."""
        out = self.impl.numerics.out or "f32"
        names = [n for n in joint.lets if self.written(n) and self.rounds_in_place(n)]
        span = joint.pack.span
        values = {name: cast(out, Ref(name, "value", None, span)) for name in names}
        return [
            Let("let", name, None, value, None, None, True, span) for name, value in values.items()
        ]

    def _ahead(self, joint: _Joint) -> list[Line]:
        """The one product of a repeated pack, before the loop over its parts."""
        product = self._product_text(joint, "f32")
        rows = f"self.{joint.pack.name}_rows"
        line = f"{self.products_name} = torch.split({product}, {rows}, dim=-1)"
        return [*self._quantise(joint), Raw((line,))]

    def _quantise(self, joint: _Joint) -> list[Line]:
        """What a joint product needs first: its operand, and its weights read back."""
        pack = joint.pack
        ref = Ref(joint.operand, self._kind(joint.operand), None, pack.span)
        lines = self.operand_lines([ref])
        if joint.target == HALF and pack.format != "bf16":
            lines.append(Raw((f"{self.weights_local(pack)} = {self.half(pack)}",)))
        return lines

    def weights_local(self, pack: Pack) -> str:
        """What holds a joint pack's weights in bfloat16."""
        if pack.format == "bf16":
            return f"self.{pack.name}"
        return free(pack.name, self.used)

    def _stored_let(self, name: str, joint: _Joint) -> Let:
        span = joint.pack.span
        value = self.stored(name, Ref(name, "value", None, span))
        return Let("let", name, None, value, None, None, True, span)

    def _joint_dtype(self, joint: _Joint) -> tuple[str, bool]:
        """The dtype one product is written in, and whether it is read back as float32."""
        if joint.target == HALF:
            return "bf16", True
        stores = {self.stores.get(name) for name in joint.lets}
        single = all(len(self.defined[name]) == 1 for name in joint.lets)
        if len(stores) == 1 and single and (dtype := next(iter(stores))) not in (None, "f32"):
            return dtype or "f32", True
        return "f32", False

    def _product_text(self, joint: _Joint, dtype: str) -> str:
        if joint.target != HALF:
            codes, scale = self.codes_text(joint.operand)
            weight = f"self.{joint.pack.name}"
            return product_text(joint.target, codes, weight, scale, joint.pack.name, dtype)
        name = self.operand_local(joint.operand)
        product = f"({name} @ {self.weights_local(joint.pack)}.T)"
        return product if dtype == "bf16" else f"{product}.float()"

    # ------------------------------------------------------------ operands

    def _kind(self, operand: str) -> str:
        return "quantised" if operand in self.steps or operand in self.balances else "half"

    def operand_local(self, operand: str) -> str:
        """The local that holds an operand as its product takes it."""
        if self._kind(operand) == "quantised":
            return self.quantised_name(operand)
        return free(f"{operand}_h", self.used)

    def codes_text(self, point: str) -> tuple[str, str]:
        """A point's codes and their scale, as a library product takes them."""
        name, scale = self.quantised_name(point), self.steps[point]
        if scale.kind == "static":
            return name, f"self.{scale.name}"
        return f"{name}.data", f"{name}.scale"

    def operand_lines(self, found: Sequence[Ref]) -> list[Line]:
        """Operands that are not there yet, under their names."""
        out: list[Line] = []
        for ref in found:
            if ref.name in self.ready or ref.kind not in ("quantised", "half"):
                continue
            self.ready.add(ref.name)
            out.append(self.quantised_point(ref))
        return out

    def quantised_point(self, ref: Ref) -> Line:
        """The point's codes where its weights meet them in a library product; else what is
        left of it, in bfloat16 where the product is taken in that."""
        name = self.operand_local(ref.name)
        if ref.kind == "half":
            original = next(r for r in refs(self.cut.body) if r.name == ref.name)
            return self.named(name, _half(self.value(original)))
        met = [
            (use, pack)
            for pack in self.impl.packs
            for use in self._uses(pack)
            if use.operand == ref.name
        ]
        targets = {self.target(use.op, pack, ref.name) for use, pack in met}
        if targets == {HALF}:
            return self.named(name, _half(self.operand(ref.name)))
        if targets and targets.isdisjoint({None, HALF}):
            return self.named(name, self.operand(ref.name, "codes"))
        if targets != {None}:
            raise Unsupported(f"`{ref.name}`, lowered in one product only,", ref.span)
        return super().quantised_point(ref)

    def half(self, pack: Pack) -> str:
        """All of a pack in bfloat16."""
        return f"self.{pack.name}" if pack.format == "bf16" else f"{self.whole(pack)}.bfloat16()"

    def unpacked(self, pack: Pack) -> Raw:
        if self.in_half(pack):
            return self.split(pack, self.half(pack))
        return super().unpacked(pack)

    def in_half(self, pack: Pack) -> bool:
        """Whether nothing but products in bfloat16 reads a pack."""
        uses = [u for u in self._uses(pack) if self.target(u.op, pack, u.operand) == HALF]
        return len(uses) == sum(ref.name in pack.slots for ref in refs(self.cut.body))

    def names(self) -> dict[str, str]:
        return super().names() | {f"{n}_h": free(f"{n}_h", self.used) for n in self.used}

    # ------------------------------------------------------------ expressions

    def value(self, expr: Expr) -> Expr:
        if isinstance(expr, Op) and expr.op == "sdpa":
            args = [self.value(arg) for arg in expr.args]
            return rebuilt(expr, [*map(_half, args[:3]), *args[3:]])
        return super().value(expr)

    def product(self, op: Op) -> Expr:
        right, operand = self.weight(op), self.operand_name(op)
        pack = self.packs.get(right.name) if right is not None else None
        target = self.target(op.op, pack, operand)
        if target is None:
            return super().product(op)
        joint = next((j for j in self.joints if j.pack is pack), None)
        if joint is not None and joint.loop is not None:
            return Ref(self.products_name, "value", joint.loop, op.span)
        if target == HALF:
            return self._in_bf16(op, pack, operand)
        assert pack is not None and operand is not None and right is not None
        if op.op == "contract" or not pack.transposed:
            message = f"`pack {pack.name}`, not stored out_in for a library product,"
            raise Unsupported(message, op.span)
        if per(pack) != "tensor" and self.joint(pack):
            raise Unsupported(f"`pack {pack.name}`, per channel and used in parts,", op.span)
        left = Ref(operand, "quantised", None, op.span)
        kind = "codes_of" if self.joint(pack) else "held"
        weight = Ref(right.name if self.joint(pack) else pack.name, kind, right.index, right.span)
        codes, scale = self.codes_text(operand)
        attrs = (
            ("function", target),
            ("codes", codes),
            ("pack", pack.name),
            ("scale", scale),
            ("dtype", "f32"),
        )
        product = Op("codes_mm", (left, weight), attrs, op.span)
        if len(op.args) == 2:
            return product
        return Op("add", (product, self.value(op.args[2])), (), op.span)

    def _in_bf16(self, op: Op, pack: Pack | None, operand: str | None) -> Expr:
        """torch's own product in bfloat16, read back as float32."""
        plain = super().product(op)
        assert isinstance(plain, Op)
        args = [_half(arg) for arg in plain.args]
        if operand is not None and (pack is not None or operand not in self.steps):
            args[0] = Ref(operand, self._kind(operand), None, op.span)
        if pack is not None and self.in_half(pack):
            args[1] = plain.args[1]
        written = replace(plain, args=tuple(args), attrs=(*plain.attrs, ("written", "bf16")))
        return cast("f32", written)

    def before(self, stmts: Sequence[Line]) -> list[Line]:
        found = [ref for stmt in stmts if not isinstance(stmt, Raw) for ref in refs([stmt])]
        out = [*self.operand_lines(found), *super().before(stmts)]
        for ref in found:
            if ref.kind != "codes_of":
                continue
            pack = self.packs[ref.name]
            key = f"codes {pack.name}"
            if key not in self.ready:
                self.ready.add(key)
                out.append(self.split(pack, f"self.{pack.name}"))
        return out

    def rounded(self, let: Let, value: Expr) -> Expr:
        """Let a product write the dtype that its value is rounded to at once."""
        return _written(super().rounded(let, value))


def product_text(function: str, codes: str, weight: str, scale: str, pack: str, dtype: str) -> str:
    """``numerics.scaled_mm(x_q, self.down, self.in_s, self.down_scale)``."""
    out = "" if dtype == "bf16" else f", out_dtype={DTYPES[dtype]}"
    return f"numerics.{function}({codes}, {weight}, {scale}, self.{pack}_scale{out})"


def _half(value: Expr) -> Expr:
    """``value`` in bfloat16: a widening to float32 on the way changes nothing."""
    while isinstance(value, Op) and value.op == "f32":
        value = value.args[0]
    return value if isinstance(value, Op) and value.op == "bf16" else cast("bf16", value)


def _written(expr: Expr) -> Expr:
    """``product.bfloat16()`` is a product written in bfloat16; casts around stay."""
    if not isinstance(expr, Op) or expr.op not in ("f32", "bf16", "fp16"):
        return expr
    inner = _written(expr.args[0])
    if isinstance(inner, Op) and inner.op == "codes_mm" and inner.attr("dtype") == "f32":
        if expr.op == "f32":
            return inner
        return replace(inner, attrs=(*inner.attrs[:-1], ("dtype", expr.op)))
    if expr.op == "bf16" and isinstance(inner, Op) and inner.op == "f32":
        product = inner.args[0]
        if isinstance(product, Op) and product.attr("written") == "bf16":
            return product
    return cast(expr.op, inner)
