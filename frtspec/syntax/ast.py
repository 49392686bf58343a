"""The syntax tree: what the user wrote, with a span on every node.

Nothing here is resolved or checked. ``Error`` stands where recovery dropped a
member, so that later phases stay silent about it.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from frtspec.diag.source import Span

# ---------------------------------------------------------------- expressions


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier. Soft keywords may appear here."""

    id: str
    span: Span


@dataclass(frozen=True, slots=True)
class Number:
    """A number with its exact value; ``text`` is how it was written."""

    value: Decimal
    text: str
    span: Span


@dataclass(frozen=True, slots=True)
class String:
    value: str
    span: Span


@dataclass(frozen=True, slots=True)
class Field:
    """``base.name``: ``w_gate.T``, ``gate_up.scale``, ``config.hidden_size``."""

    base: Expr
    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Slice:
    """``lo:hi`` inside an index; either side may be absent."""

    lo: Expr | None
    hi: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class EllipsisItem:
    """``...`` inside an index."""

    span: Span


@dataclass(frozen=True, slots=True)
class Index:
    """``base[items]``: ``w[i]``, ``k[:, t]``, ``config.layer_types[i]``."""

    base: Expr
    items: tuple[Expr | Slice | EllipsisItem, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Granularity:
    """``per tensor|channel|row|token``, ``per block 16``, ``per group 128``."""

    kind: str
    size: int | None
    span: Span


@dataclass(frozen=True, slots=True)
class OverDim:
    """``over Dk`` as an argument: the axis a reduction or contraction runs over."""

    dim: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Arg:
    """A call argument, positional or ``name = value``."""

    value: Expr | Granularity | OverDim
    name: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class Call:
    func: Name
    args: tuple[Arg, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Unary:
    """``-x`` or ``not x``."""

    op: str
    operand: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Binary:
    """``+ - * / // % ** @ ?? and or`` and the comparisons ``== !=``."""

    op: str
    left: Expr
    right: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Compare:
    """A chain: ``512 <= D <= 16384`` or ``D % 16 == 0`` (one link)."""

    first: Expr
    links: tuple[tuple[str, Expr], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Is:
    """``axis is value`` or ``axis is (a, b)``: a test on a variant axis."""

    axis: Name
    values: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Present:
    """``present name``: whether an optional input or slot was given."""

    name: Name
    span: Span


@dataclass(frozen=True, slots=True)
class Else:
    """The ``else`` pattern of a match arm."""

    span: Span


@dataclass(frozen=True, slots=True)
class MatchArm:
    pattern: Name | String | Number | Else
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class Match:
    """``match subject { a => x, else => y }``. ``refuse`` is a ``Name`` value."""

    subject: Expr
    arms: tuple[MatchArm, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Tuple_:
    items: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class EachExpr:
    """``each i => w[i].T`` as a call argument: one value per index, in order."""

    index: Name
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class ErrorNode:
    """A member or expression that could not be parsed."""

    span: Span


Expr = (
    Name
    | Number
    | String
    | Field
    | Index
    | Call
    | Unary
    | Binary
    | Compare
    | Is
    | Present
    | Match
    | Tuple_
    | EachExpr
    | ErrorNode
)

# ---------------------------------------------------------------- small parts


@dataclass(frozen=True, slots=True)
class Docstring:
    """PEP 257-dedented text; ``raw`` is the literal as written."""

    text: str
    raw: str
    span: Span


@dataclass(frozen=True, slots=True)
class DimItem:
    """One axis: ``rows M``, ``(Hq + 2*Hkv)*D``, ``D/2 | D``, ``*``.

    ``alternatives`` is empty for ``*``.
    """

    alternatives: tuple[Expr, ...]
    rows: bool
    span: Span


@dataclass(frozen=True, slots=True)
class TypeRef:
    """``host``, ``f32``, ``bf16``, ``fp8_e4m3``…, with the wire's scale name if any."""

    name: Name
    scale: Name | None
    span: Span


@dataclass(frozen=True, slots=True)
class PathPart:
    """A literal run (``model.layers.``) or an interpolation (``{i}``) in a host path."""

    text: str | None
    expr: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class HostPath:
    """``model.layers.{i}.mlp``; ``text`` is the source form, parts carry inner spans."""

    text: str
    parts: tuple[PathPart, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Range:
    """``a..b`` (half-open) or ``a..=b``; ``hi`` is None for an open end."""

    lo: Expr
    hi: Expr | None
    inclusive: bool
    span: Span


@dataclass(frozen=True, slots=True)
class Metric:
    """``cosine >= 0.999`` or a bare reported metric ``max_abs``."""

    name: Name
    op: str | None
    bound: Number | None
    span: Span


# ---------------------------------------------------------------- structure members


@dataclass(frozen=True, slots=True)
class StatusDecl:
    """``status draft`` or ``status imported "reason"``."""

    name: Name
    reason: String | None
    span: Span


@dataclass(frozen=True, slots=True)
class DimDecl:
    """``dim M, D`` / ``dim N[i]``; one item per name."""

    names: tuple[tuple[Name, Name | None], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class IndexDecl:
    """``index i in 2..=8``."""

    name: Name
    range: Range
    span: Span


@dataclass(frozen=True, slots=True)
class ParamDecl:
    """``param eps = 1e-6``."""

    name: Name
    default: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class PortDecl:
    """``in x [rows M, D] : host …`` or ``out y [rows M, D] : host …``.

    ``default`` is what an absent optional input stands for (``= zeros``);
    ``updates`` names the input an output overwrites, ``aliases`` the input it is.
    """

    direction: str  # "in" | "out"
    name: Name
    index: Name | None
    optional: bool
    dims: tuple[DimItem, ...]
    type: TypeRef
    default: Expr | None
    updates: Name | None
    aliases: Name | None
    when: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class SlotDecl:
    """``slot w_gate [D, F]``, ``slot b? [N]``, ``slot w[i] [K, N[i]]``,
    ``slot ffn : structure decoder_ffn version 1``."""

    name: Name
    index: Name | None
    optional: bool
    dims: tuple[DimItem, ...] | None
    type: TypeRef | None
    structure: StructRef | None
    when: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class PartDecl:
    """``part attn : host fn (q, k, v) -> o``: what stays the host's inside a block."""

    name: Name
    params: tuple[Name, ...]
    results: tuple[Name, ...]
    when: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class VariantDecl:
    """``variant activation { gelu, silu }``; ``retired`` values keep their names reserved."""

    name: Name
    values: tuple[Name, ...]
    default: Name | None
    retired: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CombinationsDecl:
    """``combinations { all except (bias is none and epilogue is residual_add) }``.

    ``excluded`` holds the conditions of combinations that do not exist.
    """

    excluded: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PointDecl:
    """``point cond content [when …]``: a declared point outside a reference."""

    name: Name
    kind: Name
    when: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class LetStmt:
    """``let|point|yield|next|emit name = expr [when c [otherwise e]]``."""

    kind: str
    name: Name
    index: Name | None
    point_kind: Name | None
    value: Expr
    when: Expr | None
    otherwise: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class EachStmt:
    """``each i { … }`` in a reference."""

    index: Name
    body: tuple[Stmt, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ScanStmt:
    """``scan t in S over k[:, t], v[:, t] carry s = state { … next s = … emit out = … }``."""

    step: Name
    dim: Name
    over: tuple[Expr, ...]
    carries: tuple[tuple[Name, Expr], ...]
    body: tuple[Stmt, ...]
    span: Span


Stmt = LetStmt | EachStmt | ScanStmt | ErrorNode


@dataclass(frozen=True, slots=True)
class ReferenceDecl:
    body: tuple[Stmt, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class SeamDecl:
    """``seam mlp { from x_after_norm to o  gate cosine >= 0.995 }``."""

    name: Name
    sources: tuple[Name, ...]
    targets: tuple[Name, ...]
    gates: tuple[Metric, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class GateDecl:
    """``gate boundary on real_distribution {…}`` / ``gate latency per shape {…}``."""

    kind: Name
    on: Name | None
    per: Name | None
    metrics: tuple[Metric, ...]
    including: Name | None
    against: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class QualifyDecl:
    """``qualify [for form] { F * D >= 1048576 }``: rules of profit, not of correctness."""

    form: Name | None
    rules: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class RequireDecl:
    """``require { D % 2 == 0 }``: constraints on dims; part of the contract."""

    rules: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class EvidenceDecl:
    """``evidence \"\"\"…\"\"\"``: measurements and prose, outside the contract digest."""

    text: Docstring
    span: Span


@dataclass(frozen=True, slots=True)
class StructRef:
    """``decoder_ffn.mlp version 1``."""

    name: Name
    seam: Name | None
    version: Number | None
    span: Span


# ---------------------------------------------------------------- impl members


@dataclass(frozen=True, slots=True)
class PackDecl:
    """``pack gate_up = quantize(cat(w_gate.T, w_up.T), fp8_e4m3, per tensor)``."""

    name: Name
    index: Name | None
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class ScaleDecl:
    """``scale in_s = static(x_after_norm)``."""

    name: Name
    value: Expr
    span: Span


@dataclass(frozen=True, slots=True)
class NumericsDecl:
    """``numerics { acc f32, store g bf16, out bf16 }``: (role, value name or None, dtype)."""

    items: tuple[tuple[Name, Name | None, Name], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AdmitsDecl:
    """``admits x_after_norm { bf16, fp16, f32 }``."""

    point: Name
    dtypes: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class OnlyDecl:
    """``only activation (silu, gelu)``: variants the impl serves."""

    axis: Name
    values: tuple[Name, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class EnvelopeDecl:
    rules: tuple[Expr, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class CallDecl:
    """``call entry (args)``, ``call match axis { v => entry } (args)``, or
    ``call match axis { v => entry (args), … }`` (arm values are ``Call``; ``args`` empty)."""

    entry: Name | Match
    args: tuple[Arg, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class LowerDecl:
    """``lower matmul to scaled_mm``: a torch op that replaces an op of the dataflow."""

    op: Name
    target: Name
    span: Span


@dataclass(frozen=True, slots=True)
class RungDecl:
    """``rung hub "org/name" version 1 {…}``, ``rung local "name" version 1 {…}``,
    ``rung torch {…}``, ``rung emulate``."""

    kind: Name
    package: String | None
    version: Number | None
    members: tuple[EnvelopeDecl | CallDecl | LowerDecl | ErrorNode, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class BandDecl:
    """``band M in 1..=8 { rung … } [otherwise host]``."""

    dim: Name
    range: Range
    rungs: tuple[RungDecl, ...]
    otherwise_host: bool
    span: Span


# ---------------------------------------------------------------- scheme members


@dataclass(frozen=True, slots=True)
class StatRequest:
    """``x_after_norm: amax per tensor``; ``stat`` is ``none`` for a dynamic point."""

    point: Name
    stat: Name
    granularity: Granularity | None
    span: Span


@dataclass(frozen=True, slots=True)
class AtDecl:
    """``at decoder_ffn.mlp {stats} [keep when …] use fp8_static [with (alpha = 0.5)]``
    or ``at … keep "reason"``."""

    target: StructRef
    stats: tuple[StatRequest, ...]
    use: Name | None
    params: tuple[Arg, ...]
    keep: String | None
    keep_when: Expr | None
    span: Span


@dataclass(frozen=True, slots=True)
class OtherwiseKeepDecl:
    reason: String
    span: Span


# ---------------------------------------------------------------- binding members


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
    seat (or boundary) and None for the module itself; ``arg`` names a keyword.
    """

    kind: str
    path: HostPath | None
    arg: Name | None
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
class PointMap:
    """``point act_after_mul = input of down_proj``."""

    point: Name
    place: Place
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
    """``each i in 0..L [where …] { seats, chains }`` in a binding."""

    index: Name
    range: Range
    where: Expr | None
    members: tuple[SeatDecl | ChainDecl | GroupDecl | ErrorNode, ...]
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


BindMember = (
    VariantSet
    | ParamSet
    | SlotMap
    | PointMap
    | BoundaryDecl
    | ExpectDecl
    | SiblingsDecl
    | FormDecl
    | DimsDecl
    | ErrorNode
)

# ---------------------------------------------------------------- pipelines


@dataclass(frozen=True, slots=True)
class Item:
    """A pipeline member kept generic: ``keyword name? : kind (facts) = value {members}``.

    ``stage readout? {…}``, ``loop steps = 4``, ``window noise : swap (explicit)``,
    ``seam "…"`` (``text``), ``covers (vision_ffn, qkv_pack)`` (``names``).
    """

    keyword: str
    name: Name | None
    optional: bool
    kind: Name | None
    facts: tuple[Arg, ...]
    value: Expr | None
    text: String | None
    names: tuple[Name, ...]
    members: tuple[Item | ErrorNode, ...]
    doc: Docstring | None
    span: Span


# ---------------------------------------------------------------- declarations


@dataclass(frozen=True, slots=True)
class StructureDecl:
    name: Name
    version: Number
    doc: Docstring | None
    members: tuple[object, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PipelineDecl:
    """A pipeline structure (stages instead of tensors)."""

    name: Name
    version: Number
    doc: Docstring | None
    members: tuple[Item | StatusDecl | EvidenceDecl | GateDecl | ErrorNode, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class PipelineUse:
    """``pipeline NAME version N {…}`` inside a binding."""

    name: Name
    version: Number
    doc: Docstring | None
    members: tuple[Item | ErrorNode, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class ImplDecl:
    name: Name
    target: StructRef
    version: Number
    doc: Docstring | None
    members: tuple[object, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class SchemeDecl:
    name: Name
    doc: Docstring | None
    members: tuple[AtDecl | OtherwiseKeepDecl | StatusDecl | ErrorNode, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class AutoDecl:
    """``auto { capability >= 8.9 => fp8_static, else => none }``."""

    arms: tuple[tuple[Expr | Else, Name], ...]
    span: Span


@dataclass(frozen=True, slots=True)
class BindingDecl:
    name: Name
    doc: Docstring | None
    members: tuple[object, ...]
    span: Span


Decl = StructureDecl | PipelineDecl | ImplDecl | SchemeDecl | AutoDecl | BindingDecl | ErrorNode


@dataclass(frozen=True, slots=True)
class File:
    """``frt 1`` and what follows. ``edition`` is None when the first line was wrong."""

    edition: int | None
    decls: tuple[Decl, ...]
    span: Span
