"""The operators: what is checked, how a call is put together, fakes for tracing.

Rows are bfloat16 [M, K] and contiguous; weights are codes of [N, K] (INT4: uint8 [N, K / 2],
even places in the low four bits); scales are float32 and read on the device. All operators
return new tensors and change none of their arguments. M = 0 gives an empty result.
"""

import torch
from torch import Tensor

from ._launch import F8, GROUP, activate, counters, family, few, halves, quantize
from ._tuning import pick

NAMESPACE = __package__

WIDE = 65
"""Rows from which an FP8 product is the library's."""


def _op(function):
    op = torch.library.custom_op(f"{NAMESPACE}::{function.__name__}", mutates_args=())(function)
    op.register_fake(_like_rows)
    return op


def _like_rows(x: Tensor, first: Tensor, *rest, **named) -> Tensor:
    """Products end in as many columns as their last weight has rows."""
    weights = [t for t in (first, *rest) if isinstance(t, Tensor) and t.dtype in _CODES]
    return x.new_empty(x.shape[0], weights[-1].shape[0], dtype=torch.bfloat16)


_CODES = (F8, torch.int8, torch.uint8)


def _scaled_mm(x: Tensor, w: Tensor, xs: Tensor, ws: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch._scaled_mm(
        x, w.T, scale_a=xs, scale_b=ws, bias=bias, out_dtype=torch.bfloat16, use_fast_accum=True
    )


def _rows(family_: str, fmt: str, m: int, gated: bool, hidden: int, out: int):
    first = pick(family_, "gated" if gated else "plain", fmt, m, hidden)
    second = pick(family_, "plain", fmt, m, out)
    if first is None or second is None:
        return None
    return first, second


@_op
def fp8_ffn(
    x: Tensor, up: Tensor, down: Tensor, in_scale: Tensor, up_scale: Tensor,
    hidden_scale: Tensor, down_scale: Tensor, act: str, gated: bool,
    up_bias: Tensor | None = None, down_bias: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """A feed-forward block in FP8: bfloat16 [M, D] -> [M, D].

    up            gated [2 F, D], the gate's rows first; plain [F, D]
    down          [D, F]
    in_scale      of x, hidden_scale of what lies between; each scale is float32 [1]
    act           ``silu`` or ``gelu_tanh``
    """
    m = x.shape[0]
    if m == 0:
        return x.new_empty(0, down.shape[0], dtype=torch.bfloat16)
    hidden = up.shape[0] // (2 if gated else 1)
    rows = None
    if m < WIDE:
        rows = _rows(family(x), "fp8", m, gated, hidden, down.shape[0])
    if rows is None:
        h = _scaled_mm(quantize(x, in_scale), up, in_scale, up_scale, up_bias)
        h = activate(h, act, hidden_scale, gated)
        return _scaled_mm(h, down, hidden_scale, down_scale, down_bias)
    first, second = rows
    count = counters(down.shape[0], second, x.device)
    begun = counters(hidden, first, x.device, zeros=True)
    # One row is quantised where it is multiplied.
    codes = quantize(x, in_scale) if "bm" in first else x
    h = few(
        "fp8", codes, up, up_scale, first, xs=in_scale, bias=up_bias, gated=gated, act=act,
        out_scale=hidden_scale, count=begun, zero=count,
    )  # fmt: skip
    return few("fp8", h, down, down_scale, second, xs=hidden_scale, bias=down_bias, count=count)


@_op
def w8a16_ffn(
    x: Tensor, up: Tensor, up_scale: Tensor, down: Tensor, down_scale: Tensor, act: str
) -> Tensor:
    """A gated feed-forward block on INT8 weights: bfloat16 [M, D] -> [M, D], M up to 64.

    up [2 F, D] and down [D, F] are INT8 under scales [2 F, 1] and [D, 1], one a row.
    """
    return _weight_only("int8", x, up, up_scale, down, down_scale, act)


@_op
def w4a16_ffn(
    x: Tensor, up: Tensor, up_scale: Tensor, down: Tensor, down_scale: Tensor, act: str
) -> Tensor:
    """A gated feed-forward block on INT4 weights: bfloat16 [M, D] -> [M, D], M up to 64.

    up [2 F, D / 2] and down [D, F / 2] are pairs of codes under scales [2 F, D / 64] and
    [D, F / 64].
    """
    return _weight_only("int4", x, up, up_scale, down, down_scale, act)


def _weight_only(fmt, x, up, up_scale, down, down_scale, act) -> Tensor:
    m = x.shape[0]
    if m == 0:
        return x.new_empty(0, down.shape[0], dtype=torch.bfloat16)
    hidden = up.shape[0] // 2
    first, second = _few_rows(_rows(family(x), fmt, m, True, hidden, down.shape[0]), fmt, m)
    count = counters(down.shape[0], second, x.device)
    begun = counters(hidden, first, x.device, zeros=True)
    split = fmt == "int4"
    h = few(
        fmt, halves(x) if split else x, up, up_scale, first, gated=True, act=act,
        split_out=split, count=begun, zero=count,
    )  # fmt: skip
    return few(fmt, h, down, down_scale, second, count=count)


def _few_rows(found, fmt: str, m: int):
    if found is None:
        raise ValueError(f"{fmt} weights serve up to 64 rows here, not {m}: use the band M <= 64")
    return found


@_op
def fp8_linear(
    x: Tensor, w: Tensor, in_scale: Tensor, w_scale: Tensor, bias: Tensor | None = None
) -> Tensor:
    """FP8 projection: bfloat16 [M, K] -> [M, N]; w [N, K], scales float32 [1], bias [N]."""
    m = x.shape[0]
    if m == 0:
        return x.new_empty(0, w.shape[0], dtype=torch.bfloat16)
    row = pick(family(x), "plain", "fp8", m, w.shape[0]) if m < WIDE else None
    if row is None:
        return _scaled_mm(quantize(x, in_scale), w, in_scale, w_scale, bias)
    alone = "bm" not in row
    count = counters(w.shape[0], row, x.device, zeros=alone)
    codes = x if alone else quantize(x, in_scale, count)
    return few("fp8", codes, w, w_scale, row, xs=in_scale, bias=bias, count=count)


@_op
def w8a16_linear(x: Tensor, w: Tensor, w_scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """INT8-weight projection: bfloat16 [M, K] -> [M, N], M up to 64; w_scale [N, 1]."""
    return _weight_only_linear("int8", x, w, w_scale, bias)


@_op
def w4a16_linear(x: Tensor, w: Tensor, w_scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """INT4-weight projection: bfloat16 [M, K] -> [M, N], M up to 64; w uint8 [N, K / 2],
    w_scale [N, K / 64]."""
    return _weight_only_linear("int4", x, w, w_scale, bias)


def _weight_only_linear(fmt, x, w, w_scale, bias) -> Tensor:
    m = x.shape[0]
    if m == 0:
        return x.new_empty(0, w.shape[0], dtype=torch.bfloat16)
    row = _few_rows(pick(family(x), "plain", fmt, m, w.shape[0]), fmt, m)
    alone = fmt == "int8"
    count = counters(w.shape[0], row, x.device, zeros=alone)
    rows = x if alone else halves(x, count)
    return few(fmt, rows, w, w_scale, row, bias=bias, count=count)


def check(x: Tensor, w: Tensor, group: int = 1) -> None:
    """Raises ValueError where rows and a weight don't fit each other."""
    k = w.shape[1] * (2 if w.dtype == torch.uint8 else 1)
    if x.dim() != 2 or x.dtype != torch.bfloat16:
        raise ValueError(f"rows are bfloat16 [M, K], not {x.dtype} {list(x.shape)}")
    if x.shape[1] != k or not w.is_contiguous():
        raise ValueError(f"a weight is contiguous [N, {x.shape[1]}] codes, not {list(w.shape)}")
    if k % group or (w.dtype == torch.uint8 and k % GROUP):
        raise ValueError(f"K = {k} is no multiple of {GROUP if group == 1 else group}")
