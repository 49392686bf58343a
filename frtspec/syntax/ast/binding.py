"""Members of bindings: hosts, seats and what ties them to a host."""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.diag.source import Span
from frtspec.syntax.ast.expr import Arg, Call, ErrorNode, Expr, Name, Number, String
from frtspec.syntax.ast.parts import HostPath, Range, StructRef


@dataclass(frozen=True, slots=True)
class HostDecl:
    """``host transformers ">=5.0,<6" class Qwen3ForCausalLM`` or ``native module "…"``."""

    package: Name
    versions: String | None
    classes: tuple[Name, ...]
    native_module: String | None
    span: Span


@dataclass(frozen=True, slots=True)
class DimsDecl:
    """``dims { D = config.hidden_size, … }``. A repeated dim's name is ``N[0]``."""

    items: tuple[tuple[Name, Expr], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is on the host.

    ``kind`` is ``input``, ``output`` or ``arg``; ``path`` is relative to the
    seat (or boundary) and None for the module itself; ``arg`` names a keyword;
    ``item`` is the place in a tuple: ``output[1] of norm``; ``layout`` says how the
    host lays a port out: ``q = arg q of attention : heads_first``.
    """

    kind: str
    path: HostPath | None
    arg: Name | None
    item: Number | None
    layout: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class SlotMap:
    """``slot w_gate = gate_proj.weight : out_in`` and its weight views.

    ``value`` is a ``HostPath`` or a ``Call`` whose arguments hold paths:
    ``zeros``, ``ones``, ``transpose(p)``, ``chunks(p, scale, shift, gate)``,
    ``expert(p, e)``.
    """

    slot: Name
    index: Number | None
    value: HostPath | Call
    layout: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class PointNone:
    """``point act_after_mul none "reason"``: the host shows this value nowhere."""

    point: Name
    reason: String
    span: Span


@dataclass(frozen=True, slots=True)
class PointMap:
    """``point act_after_mul = input of down_proj``."""

    point: Name
    place: Place
    span: Span


@dataclass(frozen=True, slots=True)
class PartMap:
    """``part attend at attn with (rotary) { q = output of to_q, result = input of to_out.0 }``:
    the modules that are called in turn for a part of the host. ``given``: arguments of the
    seat's own call that go to the last one; ``places``: where in it the part begins and ends."""

    part: Name
    paths: tuple[HostPath, ...]
    given: tuple[Name, ...]
    places: tuple[tuple[Name, Place], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class VariantSet:
    """``variant activation = match config.hidden_act {…}``."""

    axis: Name
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class ParamSet:
    """``param eps = config.rms_norm_eps``."""

    name: Name
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class BoundaryDecl:
    """``boundary at PATH { x = input of …, y = output, slot w_norm = … }`` or
    ``boundary none "reason"``."""

    path: HostPath | None
    ports: tuple[tuple[Name, Place], ...]
    slots: tuple[SlotMap, ...]
    none_reason: String | None
    span: Span


@dataclass(frozen=True, slots=True)
class ExpectDecl:
    """A host fact: ``expect class (Qwen3MLP)``, ``expect bias none of (a, b)``,
    ``expect activation silu of act_fn``, ``expect returns tensor``,
    ``expect call positional``, ``expect norm_rounding before_weight of norm``."""

    fact: Name
    values: tuple[Name, ...]
    of: tuple[HostPath, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class SiblingsDecl:
    """``siblings prove (shared_input, call_order) { w[0] = q_proj, … }``."""

    facts: tuple[Name, ...]
    members: tuple[SlotMap, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class FormDecl:
    """``form swap|siblings|block|route|update`` with its typed parameters."""

    name: Name
    params: tuple[Arg, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class SeatDecl:
    """``seat ffn : decoder_ffn.mlp version 1 at model.layers.{i}.mlp {…}``."""

    name: Name
    target: StructRef
    path: HostPath
    when: Expr | None
    members: tuple[BindMember, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class EachDecl:
    """``each i in 0..L [where …] { seats, each, chains }`` in a binding."""

    index: Name
    range: Range
    where: Expr | None
    members: tuple[SeatDecl | EachDecl | ChainDecl | GroupDecl | ErrorNode, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ChainDecl:
    """``chain norm.y -> qkv.x wire fp8_e4m3 require (same_storage, …)``."""

    producer: tuple[Name, Name]
    consumer: tuple[Name, Name]
    wire: Name
    facts: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class GroupDecl:
    """``group style over (norm_in, norm_out) writer first_called [require (…)]``."""

    name: Name
    seats: tuple[Name, ...]
    writer: Name
    facts: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ExportItem:
    """``m_profile[decode] = "micro decode"``: what another catalog calls or says."""

    key: Name
    sub: Name | None
    value: String
    span: Span


@dataclass(frozen=True, slots=True)
class ExportDecl:
    """``export flash_rt { boundary_dtype = "bf16", … }``: what an export to another catalog
    needs and nothing else in the binding says."""

    target: Name
    items: tuple[ExportItem, ...]
    span: Span


BindMember = (
    VariantSet
    | ParamSet
    | SlotMap
    | PointMap
    | PointNone
    | PartMap
    | BoundaryDecl
    | ExpectDecl
    | SiblingsDecl
    | FormDecl
    | DimsDecl
    | ErrorNode
)
