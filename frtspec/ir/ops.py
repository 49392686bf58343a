"""The closed table of ops that a reference dataflow is written in.

Each row is the whole truth about one op: what it is called and takes, its shape
and dtype rule, the torch expression it becomes, what it costs. ``revision`` is
part of every contract digest: it moves when an op's meaning does.

In a lowering ``torch``, ``nnf`` (``torch.nn.functional``) and ``ops`` (the
runtime's own ops) are modules; ``{0}`` is an argument and ``{axis}`` an attribute.
"""

from __future__ import annotations

from frtspec.ir import opdef, rules, rules_layout
from frtspec.ir.expr import Attr
from frtspec.ir.lowering import POWER, PRODUCT, SUM, UNARY
from frtspec.ir.opdef import Cost, OpDef, OpParam
from frtspec.ir.rules import Rule

_X = OpParam("x", "tensor")
_EPS = OpParam("eps", "number")


def _infix(name: str, symbol: str, strength: int, rule: Rule, flops: Cost, doc: str) -> OpDef:
    params = (OpParam("a", "value"), OpParam("b", "value"))
    return OpDef(
        name, params, rule, f"{{0}} {symbol} {{1}}", flops, doc, strength=strength, symbol=symbol
    )


def _map(name: str, lowering: str, doc: str, flops: int = 1) -> OpDef:
    return OpDef(name, (_X,), rules.unary, lowering, opdef.per_element(flops), doc)


def _rope(name: str, doc: str) -> OpDef:
    params = (
        _X,
        OpParam("cos", "tensor"),
        OpParam("sin", "tensor"),
        OpParam("rotary", "dim", optional=True),
    )
    return OpDef(name, params, rules.rope, opdef.rope_text(name), opdef.per_element(3), doc)


def _norm(name: str, affine: bool, flops: int, doc: str) -> OpDef:
    extra = (OpParam("w", "tensor", True), OpParam("b", "tensor", True)) if affine else ()
    params = (_X, _EPS, *extra)
    return OpDef(
        name, params, rules.norm, opdef.norm_text(name), opdef.per_element(flops), doc, axes="many"
    )


def _reduce(name: str, doc: str) -> OpDef:
    rule = rules.reduce_axes
    return OpDef(name, (_X,), rule, opdef.reduce_text(name), opdef.per_input(1), doc, axes="many")


def _convert(name: str) -> OpDef:
    doc = f"x in {name}"
    fixed: tuple[tuple[str, Attr], ...] = (("dtype", name),)
    return OpDef(name, (_X,), rules.convert, opdef.cast_text, opdef.free, doc, fixed=fixed)


_PART = OpParam("part", "int")
_SIZES = OpParam("sizes", "dims")

_TABLE: tuple[OpDef, ...] = (
    # arithmetic
    _infix("add", "+", SUM, rules.arithmetic, opdef.per_element(1), "a + b, broadcasting"),
    _infix("sub", "-", SUM, rules.arithmetic, opdef.per_element(1), "a - b, broadcasting"),
    _infix("mul", "*", PRODUCT, rules.arithmetic, opdef.per_element(1), "a * b, broadcasting"),
    _infix("div", "/", PRODUCT, rules.arithmetic, opdef.per_element(1), "a / b, broadcasting"),
    _infix("pow", "**", POWER, rules.power, opdef.per_element(1), "a to the power of a number"),
    OpDef(
        "neg",
        (OpParam("a", "value"),),
        rules.negate,
        "-{0}",
        opdef.per_element(1),
        "-a",
        strength=UNARY,
        symbol="-",
    ),
    OpDef(
        "maximum",
        (_X, OpParam("y", "tensor")),
        rules.arithmetic,
        "torch.maximum({0}, {1})",
        opdef.per_element(1),
        "the larger of two, elementwise",
    ),
    OpDef(
        "minimum",
        (_X, OpParam("y", "tensor")),
        rules.arithmetic,
        "torch.minimum({0}, {1})",
        opdef.per_element(1),
        "the smaller of two, elementwise",
    ),
    # functions of each element
    _map("abs", "{0}.abs()", "the absolute value"),
    _map("exp", "torch.exp({0})", "e to the power of x"),
    _map("log", "torch.log({0})", "the natural logarithm"),
    _map("sqrt", "torch.sqrt({0})", "the square root"),
    _map("rsqrt", "torch.rsqrt({0})", "1 / sqrt(x)"),
    _map("sin", "torch.sin({0})", "the sine"),
    _map("cos", "torch.cos({0})", "the cosine"),
    _map("tanh", "torch.tanh({0})", "the hyperbolic tangent"),
    _map("sigmoid", "torch.sigmoid({0})", "1 / (1 + exp(-x))", 3),
    _map("softplus", "nnf.softplus({0})", "log(1 + exp(x))", 3),
    _map("relu", "nnf.relu({0})", "max(x, 0)"),
    _map("silu", "nnf.silu({0})", "x * sigmoid(x)", 4),
    _map("gelu_tanh", 'nnf.gelu({0}, approximate="tanh")', "GELU, tanh approximation", 8),
    _map("gelu_erf", "nnf.gelu({0})", "GELU, exact (erf)", 8),
    # norms, reductions, attention
    _norm("rms_norm", False, 4, "x * rsqrt(mean(x**2) + eps), no weight"),
    _norm("layer_norm", True, 7, "(x - mean) * rsqrt(var + eps), biased variance"),
    OpDef(
        "native_layer_norm",
        (_X, _EPS, OpParam("w", "tensor", True), OpParam("b", "tensor", True)),
        rules.norm,
        opdef.norm_text("native_layer_norm"),
        opdef.per_element(7),
        "layer_norm over the last axis as torch's own kernel computes it: other last bits",
    ),
    OpDef(
        "native_rms_norm",
        (_X, _EPS, OpParam("w", "tensor", True)),
        rules.norm,
        opdef.norm_text("native_rms_norm"),
        opdef.per_element(4),
        "rms_norm over the last axis as torch's own kernel computes it: other last bits",
    ),
    _norm("l2norm", False, 3, "x * rsqrt(sum(x**2) + eps)"),
    _reduce("sum", "the sum over axes"),
    _reduce("mean", "the mean over axes"),
    _reduce("amax", "the maximum over axes"),
    OpDef(
        "softmax",
        (_X,),
        rules.softmax,
        "torch.softmax({0}, dim={axis})",
        opdef.per_element(5),
        "softmax over one axis, the last by default",
        axes="one",
    ),
    OpDef(
        "causal_mask",
        (OpParam("scores", "tensor"),),
        rules.mask,
        "ops.causal_mask({0})",
        opdef.per_element(1),
        "scores [..., queries, keys] with keys after their query at -inf; the last query "
        "meets the last key",
    ),
    OpDef(
        "where",
        (OpParam("condition", "tensor"), OpParam("a", "value"), OpParam("b", "value")),
        rules.where,
        "torch.where({0}, {1}, {2})",
        opdef.per_element(1),
        "a where the condition holds, else b",
    ),
    # routing
    OpDef(
        "top_k",
        (_X, OpParam("k", "dim"), _PART),
        rules_layout.top_k,
        "torch.topk({0}, {k}, dim=-1)[{part}]",
        opdef.per_input(1),
        "the k largest entries of the last axis, largest first: their values (0) or places (1)",
    ),
    OpDef(
        "spread",
        (_X, OpParam("places", "tensor"), OpParam("size", "dim")),
        rules_layout.spread,
        "ops.spread({0}, {1}, {size})",
        opdef.free,
        "a last axis of a given size, each entry of x at its place, zeros elsewhere",
    ),
    # products
    _infix("matmul", "@", PRODUCT, rules.matmul, opdef.product, "[..., K] @ [K, N], equal dtypes"),
    OpDef(
        "linear",
        (_X, OpParam("w", "tensor"), OpParam("b", "tensor", optional=True)),
        rules.linear,
        opdef.linear_text,
        opdef.product,
        "x @ w.T + b: a weight laid out out_in, [N, K]",
    ),
    OpDef(
        "contract",
        (OpParam("a", "tensor"), OpParam("b", "tensor")),
        rules.contract,
        'torch.einsum("{equation}", {0}, {1})',
        opdef.contraction,
        "axes of equal dims align, those after `over` are summed away",
        axes="many",
    ),
    _rope("rope_half", "rotary embedding, halves rotated: [-x2, x1]; the tail is kept"),
    _rope("rope_interleaved", "rotary embedding, neighbours rotated; the tail is kept"),
    # layout
    OpDef(
        "chunk",
        (_X, OpParam("parts", "int"), _PART),
        rules_layout.chunk,
        "{0}.chunk({parts}, dim={axis})[{part}]",
        opdef.free,
        "one of several equal parts of an axis, counted from 0",
        axes="one",
    ),
    OpDef(
        "split",
        (_X, _SIZES, _PART),
        rules_layout.split,
        opdef.tuple_text("split"),
        opdef.free,
        "one of several parts of given sizes, counted from 0",
        axes="one",
    ),
    OpDef(
        "cat",
        (OpParam("parts", "tensors"),),
        rules_layout.cat,
        opdef.cat_text,
        opdef.free,
        "tensors joined along an axis, the first by default",
        axes="one",
    ),
    OpDef(
        "reshape",
        (_X, _SIZES),
        rules_layout.reshape,
        opdef.tuple_text("reshape"),
        opdef.free,
        "the same elements in another shape (no rows)",
    ),
    OpDef(
        "unflatten",
        (_X, _SIZES),
        rules_layout.unflatten,
        opdef.tuple_text("unflatten"),
        opdef.free,
        "one axis, the last by default, split into several",
        axes="one",
    ),
    OpDef(
        "flatten",
        (_X, OpParam("count", "int")),
        rules_layout.flatten,
        "{0}.flatten(-{count})",
        opdef.free,
        "the last axes merged into one",
    ),
    OpDef(
        "transpose",
        (_X, OpParam("first", "int", True), OpParam("second", "int", True)),
        rules_layout.transpose,
        opdef.transpose_text,
        opdef.free,
        "two axes swapped; `w.T` for a matrix",
        axes="many",
    ),
    OpDef(
        "repeat",
        (_X, OpParam("times", "dim")),
        rules_layout.repeat,
        "{0}.repeat_interleave({times}, dim={axis})",
        opdef.free,
        "each entry of an axis several times in a row (key/value heads)",
        axes="one",
    ),
    OpDef(
        "unsqueeze",
        (_X, OpParam("position", "int")),
        rules_layout.unsqueeze,
        "{0}.unsqueeze({position})",
        opdef.free,
        "an axis of size 1 put in",
    ),
    OpDef(
        "index",
        (_X,),
        rules_layout.index,
        opdef.index_text,
        opdef.free,
        "x[:, t], x[..., 0:D]",
        symbol="[]",
    ),
    # what stays the host's
    OpDef(
        "part",
        (OpParam("name", "value"), OpParam("parts", "tensors")),
        rules.opaque,
        opdef.part_text,
        opdef.free,
        "what a part of the host makes of these",
        symbol="(…)",
    ),
    OpDef(
        "inner",
        (OpParam("name", "value"), OpParam("parts", "tensors")),
        rules.opaque,
        opdef.part_text,
        opdef.free,
        "what a structure in a slot makes of these",
        symbol="(…)",
    ),
    # dtypes
    _convert("f32"),
    _convert("bf16"),
    _convert("fp16"),
    OpDef(
        "cast",
        (_X, OpParam("like", "tensor")),
        rules.convert_like,
        "{0}.to({1}.dtype)",
        opdef.free,
        "x in the dtype of another value",
    ),
    OpDef(
        "quantize",
        (_X, OpParam("format", "dtype"), OpParam("scale", "value")),
        rules.quantize,
        'ops.quantize({0}, "{format}", {1})',
        opdef.per_element(2),
        "x / scale, rounded and clamped to a quantised dtype",
    ),
)

OPS: dict[str, OpDef] = {op.name: op for op in _TABLE}

INFIX: dict[str, str] = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "**": "pow",
    "@": "matmul",
}
"""Operator of the language -> op."""

CALLABLE: tuple[str, ...] = tuple(op.name for op in _TABLE if op.symbol is None)
"""Ops that are written as a call."""

RUNTIME_OPS: tuple[str, ...] = (
    "rms_norm",
    "layer_norm",
    "native_layer_norm",
    "native_rms_norm",
    "l2norm",
    "causal_mask",
    "spread",
    "rope_half",
    "rope_interleaved",
    "quantize",
)
"""Functions that lowerings expect in the runtime's ``ops`` module."""

TORCH_LOWERINGS: dict[str, tuple[str, ...]] = {
    "scaled_mm": ("matmul", "linear"),
    "int8_mm": ("matmul", "linear"),
    "bf16_mm": ("matmul", "linear", "contract"),
    "native_layer_norm": ("layer_norm",),
    "native_rms_norm": ("rms_norm",),
    "addcmul_rope": ("rope_half", "rope_interleaved"),
    "sdpa": ("softmax",),
    "chunked_delta": ("contract",),
}
"""Targets of ``lower OP to TARGET`` -> the ops each can stand for. ``sdpa`` and
``chunked_delta`` stand for all that is around the op (see ``regions``)."""

PRODUCTS_OF_CODES = {"scaled_mm": "fp8_e4m3", "int8_mm": "int8"}
"""Targets that multiply two tensors of codes -> the format of both."""
