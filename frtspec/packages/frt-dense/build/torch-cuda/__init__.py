# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Feed-forward blocks and projections on quantised weights, for NVIDIA GPUs from sm_80.

FP8 (E4M3, static scales per tensor, from sm_89), INT8 weights with a scale a row and INT4
weights with a scale for each 64 of a row. Every entry takes rows [M, K] in bfloat16 (made
contiguous here) and returns new rows in bfloat16; scales are float32 tensors.

FP8 products of up to 64 rows add partial sums of 128 or 256 places in float32. From 65 rows on
the library's product with fast accumulation runs, which keeps about 14 bits between
instructions: a relative error of 1.3e-3 at K = 4096, below that of the bfloat16 it is
stored in.
"""

from torch import Tensor

from . import _ops
from ._ops import check


def fp8_swiglu(
    x: Tensor, gate_up: Tensor, down: Tensor, in_scale: Tensor, gate_up_scale: Tensor,
    hidden_scale: Tensor, down_scale: Tensor,
) -> Tensor:  # fmt: skip
    """Gated FP8 FFN with SiLU: x [M, D], gate_up [2 F, D], down [D, F] -> [M, D]."""
    return _fp8(x, gate_up, down, in_scale, gate_up_scale, hidden_scale, down_scale, "silu")


def fp8_geglu(
    x: Tensor, gate_up: Tensor, down: Tensor, in_scale: Tensor, gate_up_scale: Tensor,
    hidden_scale: Tensor, down_scale: Tensor,
) -> Tensor:  # fmt: skip
    """``fp8_swiglu`` with tanh-GELU."""
    return _fp8(x, gate_up, down, in_scale, gate_up_scale, hidden_scale, down_scale, "gelu_tanh")


def _fp8(x, gate_up, down, in_scale, gate_up_scale, hidden_scale, down_scale, act) -> Tensor:
    x = x.contiguous()
    check(x, gate_up, 16)
    return _ops.fp8_ffn(
        x, gate_up, down, in_scale, gate_up_scale, hidden_scale, down_scale, act, True
    )


def fp8_gelu_ffn(
    x: Tensor, up: Tensor, up_bias: Tensor, down: Tensor, down_bias: Tensor, in_scale: Tensor,
    up_scale: Tensor, hidden_scale: Tensor, down_scale: Tensor,
) -> Tensor:  # fmt: skip
    """FP8 FFN with tanh-GELU and biases: x [M, D], up [F, D], down [D, F] -> [M, D]."""
    x = x.contiguous()
    check(x, up, 16)
    return _ops.fp8_ffn(
        x, up, down, in_scale, up_scale, hidden_scale, down_scale, "gelu_tanh", False,
        up_bias, down_bias,
    )  # fmt: skip


def w8a16_swiglu(
    x: Tensor, gate_up: Tensor, gate_up_scale: Tensor, down: Tensor, down_scale: Tensor
) -> Tensor:
    """Gated FFN with SiLU on INT8 weights: gate_up [2 F, D], down [D, F]; M up to 64."""
    x = x.contiguous()
    check(x, gate_up)
    return _ops.w8a16_ffn(x, gate_up, gate_up_scale, down, down_scale, "silu")


def w8a16_geglu(
    x: Tensor, gate_up: Tensor, gate_up_scale: Tensor, down: Tensor, down_scale: Tensor
) -> Tensor:
    """``w8a16_swiglu`` with tanh-GELU."""
    x = x.contiguous()
    check(x, gate_up)
    return _ops.w8a16_ffn(x, gate_up, gate_up_scale, down, down_scale, "gelu_tanh")


def w4a16_swiglu(
    x: Tensor, gate_up: Tensor, gate_up_scale: Tensor, down: Tensor, down_scale: Tensor
) -> Tensor:
    """Gated FFN with SiLU on INT4 weights in groups of 64; M up to 64."""
    x = x.contiguous()
    check(x, gate_up)
    return _ops.w4a16_ffn(x, gate_up, gate_up_scale, down, down_scale, "silu")


def w4a16_geglu(
    x: Tensor, gate_up: Tensor, gate_up_scale: Tensor, down: Tensor, down_scale: Tensor
) -> Tensor:
    """``w4a16_swiglu`` with tanh-GELU."""
    x = x.contiguous()
    check(x, gate_up)
    return _ops.w4a16_ffn(x, gate_up, gate_up_scale, down, down_scale, "gelu_tanh")


def fp8_linear(
    x: Tensor, w: Tensor, in_scale: Tensor, w_scale: Tensor, bias: Tensor | None = None
) -> Tensor:
    """FP8 projection: x [M, K], w [N, K] -> [M, N]."""
    x = x.contiguous()
    check(x, w, 16)
    return _ops.fp8_linear(x, w, in_scale, w_scale, bias)


def w8a16_linear(x: Tensor, w: Tensor, w_scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """Projection on INT8 weights, w_scale [N, 1]; M up to 64."""
    x = x.contiguous()
    check(x, w)
    return _ops.w8a16_linear(x, w, w_scale, bias)


def w4a16_linear(x: Tensor, w: Tensor, w_scale: Tensor, bias: Tensor | None = None) -> Tensor:
    """Projection on INT4 weights in groups of 64, w_scale [N, K / 64]; M up to 64."""
    x = x.contiguous()
    check(x, w)
    return _ops.w4a16_linear(x, w, w_scale, bias)
