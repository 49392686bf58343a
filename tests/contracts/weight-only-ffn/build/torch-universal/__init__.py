# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/weight-only-ffn version 1: bf16 activations, INT8 or NVFP4 weights.

Products are taken in float32 of the weight as it is read back. In a gated MLP the two halves are
stored in bfloat16, and so is what goes into the second product. The ABI gives the MLPs
``**kwargs`` and names none of them: none is taken here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.nn import functional as nnf

from ._shared import nvfp4
from ._shared.checking import BF16, F32, I8, U8, Check, Ops, has_rank, require

ARCH: str | None = None
"""The compute capability played; None is one that every op runs on."""

OPS = Ops(__name__)

Act = Callable[[Tensor], Tensor]


def _gelu(x: Tensor) -> Tensor:
    return nnf.gelu(x, approximate="tanh")


def _check(op: str) -> Check:
    check = Check(op)
    check.arch(ARCH, "11.0", "12.0", "12.1")
    return check


# ---------------------------------------------------------------- ops


@OPS.op("quantize_w8_weight_bf16(Tensor weight, Tensor! codes, Tensor! scales)")
def _quantize_w8(weight: Tensor, codes: Tensor, scales: Tensor) -> None:
    check = _check("quantize_w8_weight_bf16")
    check.tensor("weight", weight, BF16, ("N", "K"))
    check.multiple("axis 1 of weight", check.sizes["K"], 64)
    value = weight.float()
    scale = (value.abs().amax(dim=1) / 127).clamp(min=1e-12)
    scales.copy_(scale)
    codes.copy_((value / scale[:, None]).round().clamp(-127, 127))


@OPS.op("quantize_w4_weight_bf16(Tensor weight, Tensor! codes, Tensor! scales)")
def _quantize_w4(weight: Tensor, codes: Tensor, scales: Tensor) -> None:
    check = _check("quantize_w4_weight_bf16")
    check.tensor("weight", weight, BF16, ("N", "K"))
    check.multiple("axis 1 of weight", check.sizes["K"], 64)
    packed, swizzled = nvfp4.quantize(weight)
    codes.copy_(packed)
    scales.copy_(swizzled)


def _w8(
    check: Check,
    name: str,
    weight: Tensor,
    scales: str,
    scale: Tensor,
    shape: tuple[int | str, ...],
) -> Tensor:
    """Check INT8 codes [N, K] with a scale a row; the weight in float32."""
    rows, columns = check.tensor(name, weight, I8, shape)
    check.multiple(f"axis 1 of {name}", columns, 64)
    check.tensor(scales, scale, F32, (rows,))
    return weight.float() * scale[:, None]


def _w4(
    check: Check, name: str, weight: Tensor, scales: str, sfb: Tensor, shape: tuple[int | str, ...]
) -> Tensor:
    """Check NVFP4 codes [N, K / 2] with tiled scales; the weight in float32."""
    rows, half = check.tensor(name, weight, U8, shape)
    check.multiple(f"axis 1 of {name}", half, 32)
    check.tensor(scales, sfb, U8)
    wanted = nvfp4.swizzled_bytes(rows, half * 2)
    check.require(scales, sfb.numel() == wanted, f"{sfb.numel()} bytes, not {wanted}")
    return nvfp4.dequantize(weight, sfb)


@OPS.op(
    "w8a16_linear_bf16(Tensor x, Tensor weight_int8, Tensor weight_scale, int variant, Tensor! out)"
)
def _linear(
    x: Tensor, weight_int8: Tensor, weight_scale: Tensor, variant: int, out: Tensor
) -> None:
    check = _check("w8a16_linear_bf16")
    check.tensor("x", x, BF16, ("M", "K"))
    weight = _w8(check, "weight_int8", weight_int8, "weight_scale", weight_scale, ("N", "K"))
    check.require("variant", variant >= 0, f"{variant}")
    check.tensor("out", out, BF16, ("M", "N"))
    out.copy_(x.float() @ weight.T)


def _gated(check: Check, act: Act, x: Tensor, gate_up: Tensor, down: Tensor, out: Tensor) -> None:
    """The MLP with its weights in float32; the gate's rows come first."""
    check.tensor("out", out, BF16, ("M", "N"))
    gate, up = (x.float() @ gate_up.T).bfloat16().float().chunk(2, dim=1)
    out.copy_((act(gate) * up).bfloat16().float() @ down.T)


def _act(check: Check, activation: str) -> Act:
    check.require("activation", activation in ("silu", "gelu"), activation)
    return nnf.silu if activation == "silu" else _gelu


@OPS.op(
    "w8a16_gated_ffn_bf16(Tensor x, Tensor gate_up, Tensor gate_up_scale, Tensor down, "
    "Tensor down_scale, str activation, Tensor! out)"
)
def _w8_ffn(
    x: Tensor,
    gate_up: Tensor,
    gate_up_scale: Tensor,
    down: Tensor,
    down_scale: Tensor,
    activation: str,
    out: Tensor,
) -> None:
    check = _check("w8a16_gated_ffn_bf16")
    check.tensor("x", x, BF16, ("M", "K"))
    first = _w8(check, "gate_up", gate_up, "gate_up_scale", gate_up_scale, ("2H", "K"))
    check.multiple("axis 0 of gate_up", check.sizes["2H"], 2)
    hidden = check.sizes["2H"] // 2
    second = _w8(check, "down", down, "down_scale", down_scale, ("N", hidden))
    _gated(check, _act(check, activation), x, first, second, out)


@OPS.op(
    "w4a16_gated_ffn_bf16(Tensor x, Tensor gate_up_weight, Tensor gate_up_sfb, "
    "Tensor down_weight, Tensor down_sfb, str activation, Tensor! out)"
)
def _w4_ffn(
    x: Tensor,
    gate_up_weight: Tensor,
    gate_up_sfb: Tensor,
    down_weight: Tensor,
    down_sfb: Tensor,
    activation: str,
    out: Tensor,
) -> None:
    check = _check("w4a16_gated_ffn_bf16")
    _, columns = check.tensor("x", x, BF16, ("M", "K"))
    check.multiple("axis 1 of x", columns, 64)
    shape: tuple[int | str, ...] = ("2H", columns // 2)
    first = _w4(check, "gate_up_weight", gate_up_weight, "gate_up_sfb", gate_up_sfb, shape)
    check.multiple("axis 0 of gate_up_weight", check.sizes["2H"], 4)
    shape = ("N", check.sizes["2H"] // 4)
    second = _w4(check, "down_weight", down_weight, "down_sfb", down_sfb, shape)
    _gated(check, _act(check, activation), x, first, second, out)


# ---------------------------------------------------------------- entry points


def quantize_w8_weight_bf16(weight: Tensor) -> tuple[Tensor, Tensor]:
    """weight bf16 [N, K] as INT8 [N, K] and float32 [N]: symmetric, a scale a row."""
    has_rank("quantize_w8_weight_bf16", 2, weight=weight)
    codes = weight.new_empty(weight.shape, dtype=I8)
    scales = weight.new_empty((weight.shape[0],), dtype=F32)
    _quantize_w8(weight, codes, scales)
    return codes, scales


def quantize_w4_weight_bf16(weight: Tensor) -> tuple[Tensor, Tensor]:
    """weight bf16 [N, K] as codes uint8 [N, K / 2] and tiled scales uint8."""
    has_rank("quantize_w4_weight_bf16", 2, weight=weight)
    rows, columns = weight.shape
    codes = weight.new_empty((rows, columns // 2), dtype=U8)
    scales = weight.new_empty((nvfp4.swizzled_bytes(rows, columns),), dtype=U8)
    _quantize_w4(weight, codes, scales)
    return codes, scales


def w8a16_linear_bf16(
    x: Tensor,
    weight_int8: Tensor,
    weight_scale: Tensor,
    *,
    variant: int = 0,
    out: Tensor | None = None,
) -> Tensor:
    """x bf16 [M, K] times INT8 [N, K] transposed, scaled by row: bf16 [M, N]."""
    has_rank("w8a16_linear_bf16", 2, x=x, weight_int8=weight_int8)
    if out is None:
        out = x.new_empty((x.shape[0], weight_int8.shape[0]), dtype=BF16)
    _linear(x, weight_int8, weight_scale, variant, out)
    return out


def _none_of(op: str, kwargs: dict[str, Any]) -> None:
    for name in kwargs:
        require(op, name, False, "an argument that the ABI does not name")


def _w8_entry(name: str, activation: str) -> Callable[..., Tensor]:
    def entry(
        x: Tensor,
        gate_up: Tensor,
        gate_up_scale: Tensor,
        down: Tensor,
        down_scale: Tensor,
        **kwargs: Any,
    ) -> Tensor:
        """x bf16 [M, K]; gate_up INT8 [2H, K], float32 [2H]; down INT8 [N, H], float32 [N]."""
        _none_of(name, kwargs)
        has_rank(name, 2, x=x, gate_up=gate_up, down=down)
        out = x.new_empty((x.shape[0], down.shape[0]), dtype=BF16)
        _w8_ffn(x, gate_up, gate_up_scale, down, down_scale, activation, out)
        return out

    return entry


def _w4_entry(name: str, activation: str) -> Callable[..., Tensor]:
    def entry(
        x: Tensor,
        gate_up_weight: Tensor,
        gate_up_sfb: Tensor,
        down_weight: Tensor,
        down_sfb: Tensor,
        **kwargs: Any,
    ) -> Tensor:
        """x bf16 [M, K]; codes uint8 [2H, K / 2] and [N, H / 2] with their tiled scales."""
        _none_of(name, kwargs)
        has_rank(name, 2, x=x, gate_up_weight=gate_up_weight, down_weight=down_weight)
        out = x.new_empty((x.shape[0], down_weight.shape[0]), dtype=BF16)
        _w4_ffn(x, gate_up_weight, gate_up_sfb, down_weight, down_sfb, activation, out)
        return out

    return entry


w8a16_swiglu_ffn_bf16 = _w8_entry("w8a16_swiglu_ffn_bf16", "silu")
w8a16_geglu_ffn_bf16 = _w8_entry("w8a16_geglu_ffn_bf16", "gelu")
w4a16_swiglu_ffn_bf16 = _w4_entry("w4a16_swiglu_ffn_bf16", "silu")
w4a16_geglu_ffn_bf16 = _w4_entry("w4a16_geglu_ffn_bf16", "gelu")
