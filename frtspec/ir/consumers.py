"""Nothing that a spec declares is ignored: who consumes each field of the syntax tree.

Every field of every node has a row here, and a test walks the node classes to prove it.
Where a construct has no consumer yet, a row of ``MISSING`` says what is missing, and
the checks report it as FRT0700.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from frtspec.ir.types import QUANTISED
from frtspec.ir.words import WIRE_FORMATS
from frtspec.syntax import ast

POSITION = "messages: the place shown"
STRUCTURE = "structures/*.py"
REFERENCE = "structures/*.py: reference()"
SHAPES = "structures/*.py: SHAPES, read by the dims solver"
SCAN = "structures/*.py: DISCOVER, read by scan"
GATES = "gates/*.py and the gates of attach"
IMPL = "impls/*.py"
SCHEME = "schemes/*.py"
SEATS = "<host>/__init__.py: seats()"
LINKS = "<host>/__init__.py: links()"
STAGES = "pipelines/*.py"
TRACE = "pipelines/*.py: the trace checks"
STAGES_USE = "<host>/<pipeline>.py"
COVERAGE = "<host>/<pipeline>.py: the coverage manifest"
CHECK = "check"
DOCS = "docstrings of generated files"
LOCK = "spec.lock"
RULES = "structures/*.py: RULES, judged by attach for every seat"
DIFF = "diff: the point that it is in the version before"
EXPORT = "export: the document written for the other catalog"
NONE = "none yet: FRT0700"


def _expr(*fields: str) -> Mapping[str, str]:
    by = f"{REFERENCE}, config expressions of {SEATS}, rules and shapes"
    return dict.fromkeys(fields, by)


CONSUMERS: Mapping[str, Mapping[str, str]] = {
    # expressions
    "Name": _expr("id"),
    "Number": {**_expr("value"), "text": "messages and the formatter: as it was written"},
    "String": _expr("value"),
    "Field": _expr("base", "name"),
    "Slice": _expr("lo", "hi"),
    "EllipsisItem": {},
    "Index": _expr("base", "items"),
    "Granularity": dict.fromkeys(("kind", "size"), f"{IMPL}: packs and scales; {SCHEME}"),
    "OverDim": {"dim": f"{REFERENCE}: the axes of an op"},
    "Arg": _expr("value", "name"),
    "Call": _expr("func", "args"),
    "Unary": _expr("op", "operand"),
    "Binary": _expr("op", "left", "right"),
    "Compare": _expr("first", "links"),
    "Is": {"axis": f"{REFERENCE}: branches", "values": f"{REFERENCE}: branches"},
    "FactIs": {"fact": RULES, "values": RULES},
    "OneOf": {"subject": RULES, "values": RULES},
    "Present": {"name": f"{REFERENCE}: branches"},
    "Else": {},
    "MatchArm": _expr("pattern", "value"),
    "Match": _expr("subject", "arms"),
    "Tuple_": _expr("items"),
    "EachExpr": dict.fromkeys(("index", "value"), f"{IMPL}: packs of repeated slots"),
    "ErrorNode": {},
    # small parts
    "Docstring": {"text": DOCS, "raw": "the formatter"},
    "DimItem": {"alternatives": SHAPES, "rows": SHAPES},
    "TypeRef": {
        "name": f"{CHECK}: types of values",
        "scale": f"{REFERENCE}: codes under a scale; {GATES}",
    },
    "PathPart": {"text": SEATS, "expr": SEATS},
    "HostPath": {"text": f"{SEATS}; messages", "parts": SEATS},
    "Range": dict.fromkeys(("lo", "hi", "inclusive"), f"{SEATS}: loops; {CHECK}: indexes, bands"),
    "Metric": dict.fromkeys(("name", "op", "bound"), GATES),
    # structures
    "StatusDecl": {
        "name": f"{LOCK}; attach refuses `imported`",
        "reason": "attach: why it refuses",
    },
    "DimDecl": {"names": SHAPES},
    "IndexDecl": {"name": SHAPES, "range": f"{CHECK}: how many siblings a seat may have"},
    "ParamDecl": {
        **dict.fromkeys(("name", "default"), f"{REFERENCE}; {IMPL}: params of impls"),
        **dict.fromkeys(("least", "most"), f"{CHECK}: what a route may set; {IMPL}: docstrings"),
    },
    "PortDecl": {
        "direction": STRUCTURE,
        "name": REFERENCE,
        "index": REFERENCE,
        "optional": REFERENCE,
        "dims": SHAPES,
        "type": f"{CHECK}: types of values",
        "default": REFERENCE,
        "updates": f"{REFERENCE}: what it returns; {GATES}: its input stays as it was",
        "aliases": f"{REFERENCE}: what it returns; {GATES}: one storage",
        "when": REFERENCE,
    },
    "SlotDecl": {
        "name": REFERENCE,
        "index": REFERENCE,
        "optional": REFERENCE,
        "dims": SHAPES,
        "type": f"{CHECK}: types of values",
        "structure": f"{REFERENCE}: calls the inner one; {SHAPES}",
        "pins": f"{REFERENCE}: calls the inner one",
        "when": REFERENCE,
    },
    "PartDecl": {
        **dict.fromkeys(("name", "when"), REFERENCE),
        **dict.fromkeys(("params", "results"), f"{CHECK}: how it is called, types of values"),
    },
    "VariantDecl": {
        "name": REFERENCE,
        "values": REFERENCE,
        "default": REFERENCE,
        "retired": f"{CHECK}: the names stay taken",
    },
    "CombinationsDecl": {"excluded": f"{CHECK}: which combinations exist"},
    "PointDecl": {
        **dict.fromkeys(("name", "kind", "when"), f"{STRUCTURE}; what attach watches"),
        "was": DIFF,
    },
    "LetStmt": {
        **dict.fromkeys(("kind", "name", "index", "value", "when", "otherwise"), REFERENCE),
        "point_kind": f"{STRUCTURE}; {SCHEME}: only statistics reduce",
        "was": DIFF,
    },
    "EachStmt": {"index": REFERENCE, "body": REFERENCE},
    "ScanStmt": dict.fromkeys(("step", "dim", "over", "carries", "body"), REFERENCE),
    "ReferenceDecl": {"body": REFERENCE},
    "SeamDecl": {
        **dict.fromkeys(("name", "sources", "targets"), f"{STRUCTURE}: the seam's function"),
        "gates": GATES,
    },
    "GateDecl": dict.fromkeys(("kind", "on", "per", "metrics", "including", "against"), GATES),
    "QualifyDecl": dict.fromkeys(("form", "when", "rules"), f"{RULES}; enforced with speed"),
    "DiscoverDecl": dict.fromkeys(("seam", "members"), SCAN),
    "RoleDecl": dict.fromkeys(("name", "index", "kind", "slots", "where", "tells", "gives"), SCAN),
    "DiscoverDims": {"names": SCAN},
    "CalledDecl": dict.fromkeys(("role", "names"), SCAN),
    "RoleSlot": dict.fromkeys(("name", "chunks"), SCAN),
    "TellsDecl": dict.fromkeys(("axis", "arms"), SCAN),
    "RolePlace": dict.fromkeys(("kind", "role", "arg", "item", "layout"), SCAN),
    "RolePoint": dict.fromkeys(("point", "place"), SCAN),
    "DiscoverBoundary": dict.fromkeys(("where", "ports"), SCAN),
    "RequireDecl": dict.fromkeys(("form", "when", "rules"), f"{RULES}; a broken one refuses"),
    "EvidenceDecl": {"text": DOCS},
    "StructRef": dict.fromkeys(("name", "seam", "version"), f"{IMPL}, {SCHEME}, {SEATS}"),
    # impls
    "PackDecl": {"name": IMPL, "index": NONE, "value": IMPL},
    "ScaleDecl": {"name": IMPL, "value": IMPL},
    "NumericsDecl": {"items": f"{IMPL}: the emulation"},
    "AdmitsDecl": dict.fromkeys(("point", "dtypes"), "the ladder: admission; the guard"),
    "OnlyDecl": dict.fromkeys(("axis", "values"), "the ladder: admission"),
    "EnvelopeDecl": {"rules": "the ladder: admission"},
    "CallDecl": {"entry": IMPL, "args": IMPL},
    "CallStepsDecl": {"steps": IMPL},
    "StepDecl": dict.fromkeys(("kind", "names", "several", "value", "when", "otherwise"), IMPL),
    "LowerDecl": {"op": IMPL, "target": IMPL},
    "RungDecl": dict.fromkeys(("kind", "package", "version", "members"), f"{IMPL}: the ladder"),
    "BandDecl": dict.fromkeys(("dim", "range", "rungs", "otherwise_host"), f"{IMPL}: the bands"),
    # schemes
    "StatRequest": dict.fromkeys(
        ("point", "stat", "args", "granularity"), f"{SCHEME}: what is measured"
    ),
    "AtDecl": dict.fromkeys(("target", "stats", "use", "params", "keep", "keep_when"), SCHEME),
    "OtherwiseKeepDecl": {"reason": SCHEME},
    # bindings
    "HostDecl": {
        **dict.fromkeys(("package", "versions", "classes"), f"{SEATS}; checked by attach"),
        "native_module": "attach: why a native host is refused",
    },
    "DimsDecl": {"items": SEATS},
    "Place": dict.fromkeys(("kind", "path", "arg", "item", "layout"), SEATS),
    "SlotMap": dict.fromkeys(("slot", "index", "value", "layout"), SEATS),
    "PointMap": {"point": SEATS, "place": SEATS},
    "PartMap": dict.fromkeys(("part", "paths", "given", "places"), SEATS),
    "PointNone": {"point": SEATS, "reason": SEATS},
    "VariantSet": {"axis": SEATS, "value": SEATS},
    "ParamSet": {"name": SEATS, "value": SEATS},
    "BoundaryDecl": dict.fromkeys(("path", "ports", "slots", "none_reason"), SEATS),
    "ExpectDecl": dict.fromkeys(("fact", "values", "of"), f"{SEATS}; checked by attach"),
    "SiblingsDecl": dict.fromkeys(("facts", "members"), SEATS),
    "FormDecl": {
        "name": f"{SEATS}; {IMPL}: what it is for",
        "params": f"{SEATS}: the function of a route, a cadence; {LINKS}: the format of a wire",
    },
    "SeatDecl": dict.fromkeys(("name", "target", "path", "when", "members"), SEATS),
    "EachDecl": dict.fromkeys(("index", "range", "where", "members"), SEATS),
    "ChainDecl": dict.fromkeys(("producer", "consumer", "wire", "facts"), LINKS),
    "GroupDecl": dict.fromkeys(("name", "seats", "writer", "facts"), LINKS),
    "ExportItem": dict.fromkeys(("key", "sub", "value"), EXPORT),
    "ExportDecl": dict.fromkeys(("target", "items"), EXPORT),
    # pipelines
    "FamilyDecl": {"name": STAGES},
    "WindowDecl": dict.fromkeys(("name", "mode", "from_caller", "readback", "cadence"), TRACE),
    "BufferDecl": dict.fromkeys(("name", "mode", "cadence"), TRACE),
    "StateDecl": dict.fromkeys(("name", "cadence", "writers", "readers"), TRACE),
    "CadenceDecl": {"name": STAGES},
    "Access": dict.fromkeys(("name", "optional"), TRACE),
    "AccessDecl": dict.fromkeys(("mode", "values"), TRACE),
    "CaptureDecl": {"mode": f"{TRACE}: fallbacks; {STAGES_USE}", "text": STAGES_USE},
    "StageDecl": {
        **dict.fromkeys(("name", "optional", "members"), TRACE),
        "doc": DOCS,
    },
    "StepsDecl": {"value": TRACE},
    "UntilDecl": {"name": TRACE},
    "ShapesDecl": {"mode": TRACE},
    "RunsDecl": {"stages": TRACE},
    "LoopDecl": dict.fromkeys(("name", "members"), TRACE),
    "EmbedsDecl": {"structures": f"{CHECK}: what a segment may cover; {STAGES}"},
    "SubstructureDecl": dict.fromkeys(("name", "cadence"), STAGES),
    "ConformDecl": dict.fromkeys(("name", "check", "subjects"), TRACE),
    "PipelineGateDecl": {
        **dict.fromkeys(("kind", "on", "per", "metrics", "against"), f"{STAGES}: parity, net_win"),
        "including": f"{CHECK}: it has no meaning here",
    },
    "SeamText": dict.fromkeys(("text", "eager"), STAGES_USE),
    "PolicyDecl": {"name": STAGES_USE},
    "ProtectDecl": {"name": f"{STAGES_USE}: what run() hands to the stage"},
    "ValueAt": dict.fromkeys(("kind", "name", "place", "text"), STAGES_USE),
    "StageUse": dict.fromkeys(("name", "path", "members"), STAGES_USE),
    "LoopUse": dict.fromkeys(("name", "steps"), f"{STAGES_USE}: steps()"),
    "CadenceUse": dict.fromkeys(("name", "stages"), STAGES_USE),
    "SegmentDecl": dict.fromkeys(("name", "kind", "stage", "members"), COVERAGE),
    "CoversDecl": {"structures": COVERAGE},
    "SeatsDecl": {"seats": COVERAGE},
    "HotPathDecl": {"segments": COVERAGE},
    "CoverageDecl": dict.fromkeys(("contract", "members"), COVERAGE),
    # declarations
    "StructureDecl": {"name": STRUCTURE, "version": STRUCTURE, "doc": DOCS, "members": STRUCTURE},
    "PipelineDecl": {**dict.fromkeys(("name", "version", "members"), STAGES), "doc": DOCS},
    "PipelineUse": {**dict.fromkeys(("name", "version", "members"), STAGES_USE), "doc": DOCS},
    "ImplDecl": {"name": IMPL, "target": IMPL, "version": IMPL, "doc": DOCS, "members": IMPL},
    "SchemeDecl": {"name": SCHEME, "doc": DOCS, "members": SCHEME},
    "AutoDecl": {"arms": f"{SCHEME}: the auto table"},
    "BindingDecl": {"name": "<host>/", "doc": DOCS, "members": SEATS},
    "File": {"edition": "the parser", "decls": CHECK},
}
"""Node -> field -> its consumer. ``span`` of every node serves the messages."""


@dataclass(frozen=True)
class Missing:
    """A construct without a consumer. ``test``: on which nodes of the class it is used."""

    node: type
    what: str
    test: Callable[[Any], bool] = lambda node: True
    owner: str | None = None


_FORMATS_LATER = ("fp8_e5m2",)


def _pack_format(node: ast.PackDecl) -> str | None:
    call = node.value
    if isinstance(call, ast.Call) and len(call.args) == 3 and call.func.id == "quantize":
        wanted = call.args[1].value
        return wanted.id if isinstance(wanted, ast.Name) else None
    return None


MISSING: tuple[Missing, ...] = (
    Missing(
        ast.PortDecl,
        "a quantised value of this format at the boundary",
        lambda n: n.type.name.id in QUANTISED and n.type.name.id not in WIRE_FORMATS,
    ),
    Missing(
        ast.ParamDecl,
        "limits of a structure's param",
        lambda n: n.least is not None,
        owner="StructureDecl",
    ),
    Missing(ast.PackDecl, "a repeated pack", lambda n: n.index is not None),
    Missing(
        ast.PackDecl,
        "a pack of this format",
        lambda n: _pack_format(n) in _FORMATS_LATER,
    ),
)
"""What ``check`` reports as FRT0700. ``owner``: only in such a declaration."""
