# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/causal-conv1d-state version 2: a depthwise causal conv with its state.

The state holds the last K - 1 inputs, oldest first, and is moved on in place. Sums are taken in
float32 and rounded once.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as nnf

from ._shared.checking import BF16, Check, Ops, has_rank

OPS = Ops(__name__)


def _conv(
    check: Check,
    x: Tensor,
    w: Tensor,
    state: Tensor,
    bias: Tensor | None,
    apply_silu: bool,
) -> Tensor:
    """Check what the steps share, move the state on: float32 [B, S, C] of x [B, S, C]."""
    _, taps = check.tensor("w", w, BF16, ("C", "K"))
    check.require("w", 2 <= taps <= 8, f"{taps} taps, not 2 to 8")
    check.tensor("state", state, BF16, ("B", "C", taps - 1))
    if bias is not None:
        check.tensor("bias", bias, BF16, ("C",))
    check.apart("state", state, x=x)
    line = torch.cat((state, x.transpose(1, 2)), dim=2)
    known = None if bias is None else bias.float()
    out = nnf.conv1d(line.float(), w.float()[:, None], known, groups=x.shape[2])
    state.copy_(line[:, :, line.shape[2] - taps + 1 :])
    return (nnf.silu(out) if apply_silu else out).transpose(1, 2)


@OPS.op(
    "causal_conv1d_update_bf16(Tensor x_new, Tensor w, Tensor! state, Tensor? bias, "
    "bool apply_silu, Tensor! out)"
)
def _update(
    x_new: Tensor, w: Tensor, state: Tensor, bias: Tensor | None, apply_silu: bool, out: Tensor
) -> None:
    check = Check("causal_conv1d_update_bf16")
    check.tensor("x_new", x_new, BF16, ("B", "C"))
    check.tensor("out", out, BF16, ("B", "C"))
    out.copy_(_conv(check, x_new[:, None], w, state, bias, apply_silu)[:, 0])


@OPS.op(
    "causal_conv1d_update_chunk_parallel_bf16(Tensor x, Tensor w, Tensor! state, Tensor? bias, "
    "bool apply_silu, Tensor! out)"
)
def _update_chunk(
    x: Tensor, w: Tensor, state: Tensor, bias: Tensor | None, apply_silu: bool, out: Tensor
) -> None:
    check = Check("causal_conv1d_update_chunk_parallel_bf16")
    check.tensor("x", x, BF16, ("B", "S", "C"))
    check.tensor("out", out, BF16, ("B", "S", "C"))
    check.apart("out", out, x=x)
    out.copy_(_conv(check, x, w, state, bias, apply_silu))


# ---------------------------------------------------------------- entry points


def causal_conv1d_update_bf16(
    x_new: Tensor,
    w: Tensor,
    state: Tensor,
    bias: Tensor | None = None,
    *,
    apply_silu: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """One step: x_new bf16 [B, C], w [C, K], state [B, C, K-1] (in place): bf16 [B, C]."""
    has_rank("causal_conv1d_update_bf16", 2, x_new=x_new)
    if out is None:
        out = x_new.new_empty(x_new.shape, dtype=BF16)
    _update(x_new, w, state, bias, apply_silu, out)
    return out


def causal_conv1d_update_chunk_parallel_bf16(
    x: Tensor,
    w: Tensor,
    state: Tensor,
    bias: Tensor | None = None,
    *,
    apply_silu: bool = True,
    out: Tensor | None = None,
) -> Tensor:
    """S steps: x bf16 [B, S, C], w [C, K], state [B, C, K-1] (in place): bf16 [B, S, C]."""
    has_rank("causal_conv1d_update_chunk_parallel_bf16", 3, x=x)
    if out is None:
        out = x.new_empty(x.shape, dtype=BF16)
    _update_chunk(x, w, state, bias, apply_silu, out)
    return out
