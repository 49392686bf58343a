"""The arithmetic of an impl, derived from the dataflow it stands for.

The cut's statements are rewritten so that they compute what the kernel computes:
packed weights are read back from their packs, points with a scale go through their
format (after what balance takes from them), named values and results are rounded where
``numerics`` says so, and everything else is float32. ``Emulation`` does that in plain torch; ``Lowered`` puts a
library op in place of each product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from frtspec.codegen.cut import Cut, aliases, definitions, names_in
from frtspec.codegen.exprsrc import children, rebuilt
from frtspec.codegen.flowsrc import Raw
from frtspec.codegen.formats import dequantize_text, quantised
from frtspec.codegen.hostparts import hosted, result_of
from frtspec.codegen.names import free
from frtspec.codegen.operands import CASTS, cast, plain, root_of, transposed, weight_of
from frtspec.codegen.unsupported import Unsupported
from frtspec.ir.decl import Impl, Pack, Scale, Structure
from frtspec.ir.expr import Each, Expr, Let, Op, Ref, Scan, Select, Stmt
from frtspec.ir.walk import exprs_of, parts, reads, statements

PRODUCTS = frozenset({"matmul", "linear", "contract"})

Line = Stmt | Raw


@dataclass
class Emulation:
    """Rewrites a cut into the arithmetic of one impl.

    ``lines()`` gives statements and finished lines in order; ``results`` the names that
    hold the results afterwards.
    """

    structure: Structure
    impl: Impl
    cut: Cut
    results: list[str] = field(init=False)
    ready: set[str] = field(init=False, default_factory=set)
    hosted: set[str] = field(init=False, default_factory=set)

    def __post_init__(self) -> None:
        impl = self.impl
        if impl.numerics.acc != "f32":
            raise Unsupported(f"accumulation in {impl.numerics.acc}", impl.origin.span)
        self.repeated = {slot.name for slot in self.structure.slots if slot.index is not None}
        self.packs: dict[str, Pack] = {s: pack for pack in impl.packs for s in pack.slots}
        for pack in impl.packs:
            if pack.index is not None or (len(pack.slots) > 1 and self.repeated & {*pack.slots}):
                raise Unsupported(
                    f"`pack {pack.name}`, repeated or mixed with repeated slots,", pack.span
                )
        scales = self.impl.scales
        self.steps: dict[str, Scale] = {s.point: s for s in scales if s.kind != "balance"}
        self.balances: dict[str, Scale] = {s.point: s for s in scales if s.kind == "balance"}
        self.stores = dict(impl.numerics.stores)
        self.alias = aliases(self.cut)
        self.called = {part.name for part in hosted(self.structure)}
        self.used = names_in(self.cut) | {slot.name for slot in self.structure.slots} | self.called
        self.defined = definitions(self.cut.body)
        self.results = list(self.cut.targets)
        self.passed_on = {(p.name, p.aliases) for p in self.structure.outputs if p.aliases}

    # ------------------------------------------------------------ statements

    def lines(self) -> list[Line]:
        out: list[Line] = []
        for stmt in self.cut.body:
            if isinstance(stmt, Let) and stmt.name in self.alias:
                continue
            rewritten = self.statement(stmt)
            out += self.before(rewritten)
            out += rewritten
            out += self.after(stmt)
        return out

    def statement(self, stmt: Stmt) -> list[Line]:
        match stmt:
            case Let(value=value, otherwise=otherwise):
                other = None if otherwise is None else self.rounded(stmt, otherwise)
                return [replace(stmt, value=self.rounded(stmt, value), otherwise=other)]
            case Each(body=body):
                return [replace(stmt, body=tuple(self._block(body)))]
            case Scan(body=body, carries=carries):
                starts = tuple((name, self.value(start)) for name, start in carries)
                return [replace(stmt, carries=starts, body=tuple(self._block(body)))]

    def _block(self, body: Sequence[Stmt]) -> list[Stmt]:
        return [s for stmt in body for s in self.statement(stmt) if not isinstance(s, Raw)]

    def before(self, stmts: Sequence[Line]) -> list[Line]:
        """What the statements need first: points in their format, weights from packs."""
        out: list[Line] = []
        read = [ref for s in stmts for ref in _refs(s)]
        for ref in read:
            if ref.kind == "quantised" and ref.name not in self.ready:
                self.ready.add(ref.name)
                out.append(self.quantised_point(ref))
        for ref in read:
            if ref.kind == "handed" and ref.name not in self.hosted:
                self.hosted.add(ref.name)
                value = self.as_host(Ref(ref.name, "value", None, ref.span))
                out.append(self.named(self.handed_name(ref.name), value))
            if ref.kind == "unpacked" and ref.name not in self.ready:
                pack = self.packs[ref.name]
                self.ready.update(pack.slots)
                out.append(self.unpacked(pack))
            if ref.kind == "kept" and ref.index is not None and ref.name not in self.ready:
                self.ready.add(ref.name)
                rows = f"self.{ref.name}_rows"
                split = f"() if self.{ref.name} is None else torch.split(self.{ref.name}, {rows})"
                out.append(Raw((f"{ref.name}: Sequence[Tensor] = {split}",)))
        return out

    def after(self, stmt: Stmt) -> list[Line]:
        """Roundings that wait for the last definition of a name."""
        out: list[Line] = []
        for let in [s for s in statements([stmt]) if isinstance(s, Let)]:
            name = let.name
            if self.defined[name] == [stmt.span] or self.defined[name][-1] != stmt.span:
                continue
            if name in self.stores:
                value = self.stored(name, Ref(name, "value", None, let.span))
                out.append(Let("let", name, None, value, None, None, True, let.span))
        out += self._late_results(stmt)
        return out

    def _late_results(self, stmt: Stmt) -> list[Line]:
        """Results that are read again, or defined in several steps, are rounded at the end."""
        if stmt is not self.cut.body[-1] or self.impl.numerics.out is None:
            return []
        out: list[Line] = []
        for k, name in enumerate(self.cut.targets):
            if name in self.cut.repeated or name not in self.defined:
                continue
            if self.rounds_in_place(name) or not self.written(name):
                continue
            result = free(f"{name}_out", self.used)
            value = cast(self.impl.numerics.out, Ref(name, "value", None, stmt.span))
            out.append(Let("let", result, None, value, None, None, False, stmt.span))
            self.results[k] = result
        return out

    # ------------------------------------------------------------ rounding

    def rounded(self, let: Let, value: Expr) -> Expr:
        """The value of a definition in this arithmetic, rounded as it is stored or written.

        An output that is an input's storage is that input, in the host's dtype.
        """
        root = root_of(value)
        if isinstance(root, Ref) and (let.name, root.name) in self.passed_on:
            return root
        out = self.value(value)
        if len(self.defined[let.name]) == 1 and let.name in self.stores:
            out = self.stored(let.name, out)
        if self.written(let.name) and self.rounds_in_place(let.name):
            out = cast(self.impl.numerics.out or "f32", out)
        return out

    def written(self, name: str) -> bool:
        """Whether a result is rounded to what the form writes: one with a dtype of its own,
        such as a float32 state, is not."""
        port = next((port for port in self.structure.outputs if port.name == name), None)
        return self.impl.numerics.out is not None and (port is None or port.dtype == "host")

    def rounds_in_place(self, name: str) -> bool:
        """Whether a result is rounded where it is defined: once, and never read again."""
        if name not in self.cut.targets:
            return False
        read = any(name in reads(stmt) for stmt in self.cut.body)
        return len(self.defined[name]) == 1 and not read

    def stored(self, name: str, value: Expr) -> Expr:
        """``value`` rounded to what ``name`` is stored as, in float32 again."""
        return cast("f32", cast(self.stores[name], value))

    # ------------------------------------------------------------ expressions

    def value(self, expr: Expr) -> Expr:
        """The expression in float32, whatever dtypes the reference gives its parts."""
        match expr:
            case Op(op=op, args=args) if op in CASTS:
                return self.value(args[0])
            case Op(op=op) if op in PRODUCTS:
                return self.product(expr)
            case Op(op="part" | "inner"):
                return self.part(expr)
            case Op(op="quantize"):
                raise Unsupported("a quantised wire in an impl", expr.span)
            case Op() | Select():
                return rebuilt(expr, [self.value(child) for child in children(expr)])
            case Ref():
                return self.reference(expr)
            case _:
                return expr

    def part(self, call: Op) -> Expr:
        """A part of the host: it is handed what the host would hand it, in the host's dtype."""
        name, *args = call.args
        given: list[Expr] = [name, *(self.handed(arg) for arg in args)]
        if call.op == "part":
            return cast("f32", rebuilt(call, given))
        assert isinstance(name, Ref)
        attrs = result_of(self.structure, name.name, call)
        return cast("f32", Op("part", tuple(given), attrs, call.span))

    def handed(self, arg: Expr) -> Expr:
        """A value in the dtype of the first tensor that the impl is handed."""
        root = root_of(arg)
        own = self.alias.get(root.name, root) if isinstance(root, Ref) else root
        if isinstance(own, Ref) and own.name in self.cut.sources:
            return own
        if isinstance(root, Ref) and root.index is None and self.settled_once(root.name):
            return Ref(root.name, "handed", None, arg.span)
        return self.as_host(self.value(arg))

    def settled_once(self, name: str) -> bool:
        """Whether a value has one definition, which always counts."""
        lets = [s for s in self.cut.body if isinstance(s, Let) and s.name == name]
        return len(self.defined.get(name, ())) == len(lets) == 1 and lets[0].when is None

    def as_host(self, value: Expr) -> Expr:
        """A value of the arithmetic as the host would hold it."""
        like = Ref(self.cut.sources[0], "input", None, value.span)
        return Op("cast", (value, like), (), value.span)

    def reference(self, ref: Ref) -> Expr:
        """A value by name: weights from their pack, the host's tensors as float32."""
        alias = self.alias.get(ref.name, ref)
        if alias.name in self.packs and alias.kind == "slot":
            pack = self.packs[alias.name]
            weight = Ref(alias.name, "unpacked", alias.index, alias.span)
            return transposed(weight) if pack.transposed else weight
        if alias.kind == "slot":
            return cast("f32", Ref(alias.name, "kept", alias.index, alias.span))
        if alias.name in self.cut.whole or (alias.kind == "over" and alias.name in self.defined):
            return alias
        if alias.kind in ("input", "over") or alias.name in self.cut.sources:
            stored = self.stored_source(alias.name)
            return cast("f32", alias if stored is None else cast(stored, alias))
        return alias

    def stored_source(self, name: str) -> str | None:
        """The dtype a tensor handed in is rounded to first, by its name or a point's."""
        names = (name, *(point for point, ref in self.alias.items() if ref.name == name))
        return next((self.stores[n] for n in names if n in self.stores), None)

    def product(self, op: Op) -> Expr:
        """A product: an operand with a scale meets a packed weight in its format."""
        roots = [root_of(arg) for arg in op.args[:2]]
        packed = [self._format(arg) is not None for arg in op.args[:2]]
        args: list[Expr] = []
        for k, arg in enumerate(op.args):
            point = self.scaled(roots[k]) if k < 2 else None
            if point is not None and any(packed[:k] + packed[k + 1 :]):
                args.append(Ref(point, "quantised", None, arg.span))
            else:
                args.append(self.value(arg))
        return plain(rebuilt(op, args))

    def scaled(self, expr: Expr) -> str | None:
        """The scaled point that an operand is, by its own name or as the input it names."""
        root = root_of(expr)
        if not isinstance(root, Ref):
            return None
        points = {**self.steps, **self.balances}
        if root.name in points:
            return root.name
        named = [p for p, ref in self.alias.items() if ref.name == root.name and p in points]
        return named[0] if named else None

    def _format(self, operand: Expr) -> object | None:
        """The format of the packed weight that an operand is, or None."""
        ref = weight_of(operand)
        pack = self.packs.get(ref.name) if ref is not None else None
        return None if pack is None else quantised(pack)

    def joint(self, pack: Pack) -> bool:
        """Whether a pack holds several weights, one below the other."""
        return len(pack.slots) > 1 or pack.slots[0] in self.repeated

    # ------------------------------------------------------------ what comes before

    def quantised_point(self, ref: Ref) -> Line:
        """The point as its weights meet it: balanced, and after its format, in float32."""
        return self.named(self.quantised_name(ref.name), self.operand(ref.name))

    def operand(self, point: str, how: str = "round_trip") -> Expr:
        """A point's values in its format. ``how``: ``round_trip``, or ``codes``."""
        span = self.impl.origin.span
        held = self.alias.get(point, Ref(point, "value", None, span))
        handed_in = held.name in self.cut.sources
        stored = self.stored_source(held.name) if handed_in else self.stores.get(point)
        value: Expr = held
        if point in self.balances:
            factors = Ref(self.balances[point].name, "scale", None, span)
            value = Op("mul", (cast("f32", value), factors), (), span)
        # With factors it is rounded behind them: that is what a quantiser gets.
        if stored is not None and (handed_in or point in self.balances):
            value = cast(stored, value)
        if point not in self.steps:
            return value if stored is None else cast("f32", value)
        scale = self.steps[point]
        fixed = (Ref(scale.name, "scale", None, span),) if scale.kind == "static" else ()
        return Op(how, (value, *fixed), (("scale", scale.name),), span)

    def named(self, name: str, value: Expr) -> Let:
        """A value of the arithmetic under a name of its own."""
        return Let("let", name, None, value, None, None, False, self.impl.origin.span)

    def names(self) -> dict[str, str]:
        """Python names of values, and of points in their format (``x_in_q``)."""
        given = {*self.cut.sources, *(slot.name for slot in self.structure.slots), *self.called}
        out = {name: free(name, given - {name}) for name in self.defined}
        points = {**self.steps, **self.balances}
        out |= {f"{name}_host": self.handed_name(name) for name in self.defined}
        return out | {f"{p}_q": self.quantised_name(p) for p in points}

    def handed_name(self, value: str) -> str:
        """The local that holds a value in the host's dtype."""
        return free(f"{value}_host", self.used)

    def quantised_name(self, point: str) -> str:
        return free(f"{point}_q" if point in self.steps else f"{point}_b", self.used)

    def unpacked(self, pack: Pack) -> Raw:
        """A pack's weights as float32, one name a slot."""
        return self.split(pack, self.whole(pack))

    def whole(self, pack: Pack) -> str:
        """All of a pack as float32."""
        form = quantised(pack)
        return f"self.{pack.name}.float()" if form is None else dequantize_text(pack, form)

    def maybe(self, pack: Pack) -> bool:
        """Whether a pack may hold nothing, where its one slot may be absent."""
        slot = next(slot for slot in self.structure.slots if slot.name == pack.slots[0])
        return slot.optional or slot.when is not None

    def split(self, pack: Pack, text: str) -> Raw:
        if self.joint(pack):
            text = f"torch.split({text}, self.{pack.name}_rows)"
        elif self.maybe(pack):
            text = f"None if self.{pack.name} is None else {text}"
        return Raw((f"{', '.join(pack.slots)} = {text}",))


# ---------------------------------------------------------------- small parts


def _refs(line: Line) -> list[Ref]:
    if isinstance(line, Raw):
        return []
    return [
        part
        for stmt in statements([line])
        for whole in exprs_of(stmt)
        for part in parts(whole)
        if isinstance(part, Ref)
    ]
