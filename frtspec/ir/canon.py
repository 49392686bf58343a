"""Canonical JSON of declarations and the contract digest.

The contract is what a declaration means. It leaves out where and how it was
written: docs, evidence, comments, spans, status, file and the order of what has no
order. Patterns of discovery are left out too: they say where to look, not what is computed.
Numbers count by value: ``2.5e-2`` is ``0.025``. The revision of every op that a reference
uses is part of its contract.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, TypeVar

from frtspec.diag.source import Span
from frtspec.dims import Axis, Constraint, Measured, Poly
from frtspec.ir import decl
from frtspec.ir.expr import Op
from frtspec.ir.ops import OPS
from frtspec.ir.walk import ops
from frtspec.syntax import ast

CANON = 1
"""Version of the canonical form itself; part of every digest."""

LEFT_OUT = frozenset(
    ["span", "origin", "doc", "evidence", "status", "discover", "whole", "exports", "was", "types"]
)

LATER = {
    "Impl": frozenset({"wire", "gates"}),
    "Rung": frozenset({"prepared", "steps"}),
    "Seat": frozenset({"parts"}),
    "RouteRef": frozenset({"calls"}),
}
"""Class -> fields that it did not always have: they count where they are set, so that their
coming changed no contract."""

UNORDERED: dict[str, frozenset[str]] = {
    "Structure": frozenset(
        [
            "dims",
            "indexed_dims",
            "indexes",
            "params",
            "slots",
            "parts",
            "variants",
            "excluded",
            "rules",
            "points",
            "seams",
            "gates",
        ]
    ),
    "Variant": frozenset({"values", "retired"}),
    "Seam": frozenset({"gates", "slots", "points", "variants", "params"}),
    "Gate": frozenset({"metrics", "against"}),
    "Inner": frozenset({"pins", "dims"}),
    "AxisIs": frozenset({"values"}),
    "AllOf": frozenset({"conds"}),
    "AnyOf": frozenset({"conds"}),
    "Select": frozenset({"arms"}),
    "Op": frozenset({"attrs"}),
    "Impl": frozenset({"params", "gates", "packs", "scales", "admits", "only", "needs"}),
    "Numerics": frozenset({"stores"}),
    "Rung": frozenset({"envelope", "lower", "only"}),
    "KernelCall": frozenset({"arms"}),
    "Scheme": frozenset({"routes"}),
    "Route": frozenset({"stats", "params"}),
    "Together": frozenset({"parts"}),
    "Pipeline": frozenset(
        ["windows", "buffers", "states", "embeds", "substructures", "conform", "gates"]
    ),
    "Stage": frozenset({"values"}),
    "StateRegion": frozenset({"writers", "readers"}),
    "PipelineGate": frozenset({"on", "metrics"}),
    "BoundPipeline": frozenset({"stages", "loops", "cadences"}),
    "BoundStage": frozenset({"values"}),
    "BoundCadence": frozenset({"stages"}),
    "Coverage": frozenset({"segments"}),
    "Segment": frozenset({"covers", "seats"}),
    "Binding": frozenset({"hosts", "pipelines", "dims"}),
    "HostRef": frozenset({"classes"}),
    "Seat": frozenset(
        [
            "variants",
            "params",
            "dims",
            "slots",
            "points",
            "placeless",
            "siblings",
            "prove",
            "expects",
        ]
    ),
    "BoundaryRef": frozenset({"inputs", "outputs", "slots"}),
    "Expect": frozenset({"values", "of"}),
    "RouteRef": frozenset({"args", "calls"}),
    "EachSeats": frozenset({"chains", "groups"}),
    "Chain": frozenset({"facts"}),
    "SeatGroup": frozenset({"seats", "facts"}),
}
"""Class -> fields whose order means nothing.

Inputs and outputs keep their order (they are positional), rungs too (a ladder), and
seats (the order in which the host runs them).
"""

Declaration = (
    decl.Structure | decl.Pipeline | decl.Impl | decl.Scheme | decl.AutoTable | decl.Binding
)
D = TypeVar("D", bound=Declaration)


def canonical(value: object) -> Any:
    """Plain data (dicts, lists, strings, numbers, None) that is equal for equal meaning."""
    match value:
        case None | bool() | int() | str():
            return value
        case Decimal():
            return number_text(value)
        case Constraint() | Poly():
            return str(value)
        case Measured():
            return {"fact": value.subject, "op": value.op, "values": canonical(value.values)}
        case Axis():
            return str(value)
        case ast.Number(value=number):
            return {"number": number_text(number)}
        case ast.Name(id=name):
            return {"name": name}
        case ast.HostPath() | ast.PathPart():
            return _path(value)
        case Op(attrs=attrs) if not {"axis", "axes"}.isdisjoint(dict(attrs)):
            # Which axis that is was settled by typing; naming the default one declares nothing.
            settled = tuple((name, attr) for name, attr in attrs if name != "over")
            return _fields(dataclasses.replace(value, attrs=settled))
        case ast.Match() if any(map(_refuses_the_rest, value.arms)):
            arms = tuple(arm for arm in value.arms if not _refuses_the_rest(arm))
            return _fields(dataclasses.replace(value, arms=arms))
        case tuple() | list():
            return [canonical(item) for item in value]
        case frozenset() | set():
            return _sorted(canonical(item) for item in value)
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type | Span):
            return _fields(value)
        case _:
            raise TypeError(f"no canonical form: {type(value).__name__}")


def _refuses_the_rest(arm: ast.MatchArm) -> bool:
    """``else => refuse``: what a match does anyway with a value that no arm serves."""
    rest = isinstance(arm.pattern, ast.Else)
    return rest and isinstance(arm.value, ast.Name) and arm.value.id == "refuse"


def _fields(value: Any) -> dict[str, Any]:
    name = type(value).__name__
    unordered = UNORDERED.get(name, frozenset())
    out: dict[str, Any] = {"is": name}
    for field in dataclasses.fields(value):
        if field.name in LEFT_OUT:
            continue
        if field.name in LATER.get(name, ()) and not getattr(value, field.name):
            continue
        item = canonical(getattr(value, field.name))
        out[field.name] = _sorted(item) if field.name in unordered else item
    return out


def _path(value: ast.HostPath | ast.PathPart) -> Any:
    if isinstance(value, ast.HostPath):
        return {"path": [canonical(part) for part in value.parts]}
    return value.text if value.expr is None else canonical(value.expr)


def _sorted(items: Iterable[Any]) -> list[Any]:
    return sorted(items, key=dump)


def number_text(value: Decimal) -> str:
    """One text for each value: ``1E+2``, ``100`` and ``100.0`` are ``100``."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return str(value)
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return "0"
    stripped = text.rstrip("0")
    exponent += len(text) - len(stripped)
    return f"{'-' if sign else ''}{stripped}" + (f"e{exponent}" if exponent else "")


def dump(data: Any) -> str:
    """Canonical JSON text: sorted keys, no spaces, ASCII."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def contract(declaration: Declaration) -> dict[str, Any]:
    """The contract of one declaration as plain data."""
    out = {"canon": CANON, "declaration": canonical(declaration)}
    if isinstance(declaration, decl.Structure):
        used = {op.op for op in ops(declaration.reference)}
        out["ops"] = {name: OPS[name].revision for name in sorted(used)}
    return out


def contract_digest(declaration: Declaration) -> str:
    """sha256 of the canonical JSON of a declaration's contract."""
    return hashlib.sha256(dump(contract(declaration)).encode()).hexdigest()


def digested(declaration: D) -> D:
    """The declaration with its contract digest filled in."""
    origin = dataclasses.replace(declaration.origin, contract_digest=contract_digest(declaration))
    return dataclasses.replace(declaration, origin=origin)
