"""The op table says what torch does: inferred shape and dtype are those of the tensors."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as nnf

from frtspec.diag.source import SourceFile
from frtspec.ir import expr as ir
from frtspec.ir.decl import Structure
from frtspec.ir.lowering import ATOM, Text, const_text, poly_text
from frtspec.ir.ops import OPS, RUNTIME_OPS
from frtspec.ir.types import Tensor
from frtspec.runtime import ops as runtime_ops
from frtspec.sema.combos import combos
from frtspec.sema.context import Context
from frtspec.sema.cost import op_flops
from frtspec.sema.structure import build_structure
from frtspec.sema.typing import infer
from frtspec.syntax import ast
from frtspec.syntax.parse import parse

SIZES = {"B": 2, "M": 6, "D": 8, "F": 12, "H": 4, "Dk": 6, "Dv": 5, "S": 3, "R": 4, "G": 2}
DTYPES = {
    "f32": torch.float32,
    "bf16": torch.bfloat16,
    "bool": torch.bool,
    "int8": torch.int8,
    "int64": torch.int64,
}

FRAME = """frt 1

structure s version 1 {
  dim B, M, D, F, H, G, Dk, Dv, S, R
  param eps = 1e-6
  in  x     [rows M, D] : host
  in  z     [rows M, D] : host
  in  wide  [rows M, H*Dk] : host
  in  q     [B, S, H, Dk] : f32
  in  g     [B, S, G, Dk] : f32
  in  v     [B, S, H, Dv] : f32
  in  state [B, H, Dk, Dv] : f32
  in  cos   [B, S, R/2] : f32
  in  full  [B, S, R] : f32
  in  flags [rows M, D] : bool
  in  codes [D, F] : int8 scale codes_s
  in  one   [rows M, D] : f32
  out y     [rows M, D] : host
  slot w     [D, F]
  slot w_out [F, D]
  slot bias  [D]
  reference {
    point p = EXPR
    yield y = x
  }
}
"""

EXPRESSIONS = """
x + z * 2 - eps
x * Dk ** -0.5
-(x - z) / (1 + z * z)
(x + z) @ w
x @ (w @ w_out)
-x ** 2
(-x) ** 2
maximum(x, z) + minimum(x, z)
abs(x) + exp(x) + log(abs(x) + 1) + sqrt(abs(x)) + rsqrt(abs(x) + 1)
sin(x) + cos(x) + tanh(x) + sigmoid(x) + softplus(x) + relu(x)
silu(x) + gelu_tanh(x) + gelu_erf(x)
rms_norm(x, eps)
rms_norm(q, 1e-6, over H, over Dk)
layer_norm(x, eps)
layer_norm(x, eps, bias, bias)
native_layer_norm(x, eps)
native_layer_norm(x, eps, bias, bias)
native_rms_norm(x, eps)
native_rms_norm(x, eps, bias)
l2norm(q, 1e-6)
sum(q, over Dk) + mean(q, axis = -1) + amax(q, over Dk)
sum(q, over B, over S)
softmax(q, over S)
softmax(x)
causal_mask(contract(transpose(q, over S, over H), unsqueeze(transpose(q, 1, 2), 3), over Dk)[..., 0])
where(flags, x, 0)
where(flags, x, z)
top_k(x, R, 0)
top_k(x, R, 1)
spread(top_k(x, R, 0), top_k(x, R, 1), D)
linear(x, w_out)
linear(x @ w, w, bias)
contract(q, state, over Dk)
contract(q, v)
contract(state, q, over Dk, over B)
contract(one, f32(w), over D)
rope_half(q, cos, cos, R)
rope_interleaved(q, full, full, R)
rope_half(q, cos, cos, R)[..., 0:R]
chunk(x, 2, 1)
chunk(q, 2, over H)[0]
split(wide, (R, H*Dk - R), 1)
split(q, (1, H - 1), 1, over H)
cat(x, z, axis = -1)
cat(w.T, w.T)
reshape(q, (B, S, H*Dk))
unflatten(wide, (H, Dk))
flatten(unflatten(wide, (H, Dk)), 2)
transpose(q, 1, 2)
transpose(w.T, -1, -2) + w
repeat(g, H/G, over G)
unsqueeze(x, -1)
unsqueeze(q, 1)
q[:, 0]
q[..., 0:R]
q[:, :, 1:H, S - 1]
q[:, -1]
f32(x) + one
bf16(one) * 2
cast(one, x)
quantize(x, fp8_e4m3, 0.5)
f32(codes) * 2
x @ w @ w_out * 2
(x * 2) @ (w * 2)
2 * (x + z) * 3
""".strip().splitlines()


def structure(expression: str) -> Structure:
    """The frame around one expression, built although it leaves most of itself unused."""
    source = SourceFile.from_text("s.frt", FRAME.replace("EXPR", expression))
    (node,) = parse(source).file.decls
    assert isinstance(node, ast.StructureDecl)
    context = Context("s")
    found = build_structure(source, node, context)
    assert [d.message for d in context.finish() if d.code != "FRT0205"] == []
    return found


def python(expr: ir.Expr) -> Text:
    match expr:
        case ir.Const(value=value):
            return const_text(value)
        case ir.DimValue(poly=poly):
            return poly_text(poly)
        case ir.Ref(name=name):
            return Text(name, ATOM)
        case ir.Op(op=op, args=args, attrs=attrs):
            return OPS[op].lower([python(arg) for arg in args], dict(attrs))
        case _:
            raise AssertionError(expr)


def tensors(found: Structure, host: torch.dtype) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    out = {}
    for item in (*found.inputs, *found.slots):
        sizes: list[int] = []
        for axis in item.shape or ():
            sizes += [2, 3] if axis.rows else [axis.alternatives[0].value(SIZES)]
        dtype = DTYPES.get(item.dtype or "host", host)
        value = torch.randn(sizes) * 2
        out[item.name] = value > 0 if dtype is torch.bool else value.to(dtype)
    return out


@pytest.mark.parametrize("host", [torch.float32, torch.bfloat16], ids=["f32", "bf16"])
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_the_rule_says_what_torch_does(expression: str, host: torch.dtype) -> None:
    found = structure(expression)
    let, _ = found.reference
    assert isinstance(let, ir.Let)
    inferred = infer(found, combos(found)[0]).values["p"]
    assert isinstance(inferred, Tensor)
    scope = {"torch": torch, "nnf": nnf, "ops": runtime_ops, "eps": 1e-6, **SIZES}
    value = eval(python(let.value).text, scope, tensors(found, host))
    wanted: list[int] = []
    for axis in inferred.shape:
        wanted += [2, 3] if axis.rows else [axis.alternatives[0].value(SIZES)]
    assert list(value.shape) == wanted
    dtype = {"host": host, "fp8_e4m3": torch.float8_e4m3fn}.get(inferred.dtype)
    assert value.dtype == (dtype or DTYPES[inferred.dtype])


def test_every_op_is_tried() -> None:
    used = {op for line in EXPRESSIONS for op in OPS if f"{op}(" in line}
    written = {"add", "sub", "mul", "div", "pow", "neg", "matmul", "index", "part", "inner"}
    assert set(OPS) - written - {"fp16"} <= used


def test_the_runtime_has_every_op_that_lowerings_call() -> None:
    assert [name for name in RUNTIME_OPS if not callable(getattr(runtime_ops, name, None))] == []


def test_costs_are_known_for_every_op() -> None:
    for expression in EXPRESSIONS:
        found = structure(expression)
        for op, call, result, _ in infer(found, combos(found)[0]).trace:
            if isinstance(result, Tensor):
                assert op_flops(op, call, result).value(SIZES) >= 0
