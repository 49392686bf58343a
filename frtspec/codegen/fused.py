"""Lowerings that stand for several statements: the dataflow with one op in their place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from frtspec.codegen.condsrc import condition
from frtspec.codegen.cut import Cut, names_in, without_unread
from frtspec.codegen.exprsrc import Lowering
from frtspec.codegen.names import free
from frtspec.codegen.pysrc import Py, call
from frtspec.codegen.unsupported import Unsupported
from frtspec.ir import regions
from frtspec.ir.decl import Impl, Rung
from frtspec.ir.expr import Attr, AxisIs, Let, Op, Ref, Stmt
from frtspec.ir.walk import exprs_of, parts, statements


def fused(cut: Cut, impl: Impl, rung: Rung) -> Cut:
    """The cut with the regions that a rung lowers as one op each."""
    body: Sequence[Stmt] = cut.body
    for _, target in rung.lower:
        if target in regions.REGIONS:
            body = _REWRITES[target](body, cut, impl)
    if body is cut.body:
        return cut
    return replace(cut, body=without_unread(body, cut.targets))


def _sdpa(body: Sequence[Stmt], cut: Cut, impl: Impl) -> list[Stmt]:
    region = regions.attention(body)
    if region is None:
        raise Unsupported("a lowering to `sdpa` where only some variants attend", impl.origin.span)
    at = region.at
    out: list[Stmt] = []
    attrs: list[tuple[str, Attr]] = [
        (name, value) for name in ("bias", "seen") if (value := getattr(region, name))
    ]
    if region.causal is not None:
        axis, values = region.causal
        attrs.append(("causal", (axis or "", *values)))
    args = [region.q, region.k, region.v]
    if region.scale is not None:
        name = free("factor", names_in(cut) | {p.name for p in impl.params})
        out.append(Let("let", name, None, region.scale, None, None, False, at.span))
        args.append(Ref(name, "value", None, at.span))
    if not _only_moved(body, at.name):
        attrs.append(("read", "f32"))
    out.append(replace(at, value=Op("sdpa", tuple(args), tuple(attrs), at.span)))
    place = next(k for k, stmt in enumerate(body) if stmt is at)
    return [*body[:place], *out, *body[place + 1 :]]


def _only_moved(body: Sequence[Stmt], name: str) -> bool:
    """Whether nothing computes with a value before it is written: it is cast and turned."""
    for stmt in statements(body):
        for whole in exprs_of(stmt):
            inner = whole
            while isinstance(inner, Op) and inner.op in (*regions.CASTS, "transpose"):
                inner = inner.args[0]
            plain = isinstance(inner, Ref) and inner.name == name
            if not plain and any(isinstance(p, Ref) and p.name == name for p in parts(whole)):
                return False
    return True


def _chunked_delta(body: Sequence[Stmt], cut: Cut, impl: Impl) -> list[Stmt]:
    region = regions.delta_rule(body)
    if region is None:
        raise Unsupported("a lowering to `chunked_delta` in some variants only", impl.origin.span)
    scan, span = region.scan, region.scan.span
    walked = (region.queries, region.keys, region.values)
    q, k, v, b = (Ref(n, "value", None, span) for n in (*walked, region.strength))
    whole = Op("chunked_delta", (q, k, v, region.log_decay, b, region.start), (), span)
    name = free("walked", names_in(cut))
    out: list[Stmt] = [Let("let", name, None, whole, None, None, False, span)]
    for place, result in enumerate(region.result):
        item = Op("item", (Ref(name, "value", None, span),), (("place", place),), span)
        out.append(Let("let", result, None, item, None, None, False, span))
    at = next(k for k, stmt in enumerate(body) if stmt is scan)
    return [*body[:at], *out, *body[at + 1 :]]


_REWRITES = {"sdpa": _sdpa, "chunked_delta": _chunked_delta}


# ---------------------------------------------------------------- source


def lowerings() -> dict[str, Lowering]:
    """How the ops of regions are written."""
    return {
        "sdpa": _attention_call,
        "chunked_delta": lambda op, args: call("numerics.gated_delta", *args),
        "item": lambda op, args: args[0].item(str(op.attr("place"))),
    }


def _attention_call(op: Op, args: list[Py]) -> Py:
    named: dict[str, Py | str] = {"scale": args[3]} if len(args) > 3 else {}
    named |= {name: str(value) for name in ("bias", "seen") if (value := op.attr(name))}
    causal = op.attr("causal")
    if isinstance(causal, tuple):
        axis, *values = map(str, causal)
        test = AxisIs(axis, tuple(values))
        named["causal"] = condition(test, {axis: f"self.{axis}"}) if axis else "True"
    result = call("numerics.attention", *args[:3], **named)
    return result.method("float") if op.attr("read") == "f32" else result
