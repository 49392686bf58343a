# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/grouped-moe-gemv version 2: rows, each times the NVFP4 weight of its expert.

Row m is multiplied by the weight that expert_idx[m] names, and by that expert's alpha. Codes and
scales lie as in fp4-gemm; the scales of each expert are tiled by themselves. Products are taken
in float32 and rounded once to bfloat16.
"""

from __future__ import annotations

from torch import Tensor

from ._shared import nvfp4
from ._shared.checking import BF16, F32, I32, U8, Check, Ops, has_rank

ARCH: str | None = None
"""The compute capability played; None is one that every op runs on."""

OPS = Ops(__name__)


def _experts(check: Check, alpha_stack: Tensor, expert_idx: Tensor) -> None:
    """One alpha an expert, one expert a row."""
    check.tensor("alpha_stack", alpha_stack, F32, ("E",))
    check.tensor("expert_idx", expert_idx, I32, ("M",))
    low, high = int(expert_idx.min()), int(expert_idx.max())
    last = check.sizes["E"] - 1
    check.require("expert_idx", low >= 0 and high <= last, f"{low}..{high} is not in 0..{last}")


def _by_row(
    x: Tensor, codes: Tensor, scales: Tensor, alpha: Tensor, expert_idx: Tensor, out: Tensor
) -> None:
    """x float32 [M, K]; codes uint8 [E, N, K / 2], scales uint8 [E, bytes]."""
    for row, expert in enumerate(expert_idx.tolist()):
        weight = nvfp4.dequantize(codes[expert], scales[expert])
        out[row].copy_(alpha[expert] * (weight @ x[row]))


# ---------------------------------------------------------------- ops


@OPS.op("quantize_weights_nvfp4_bf16(Tensor weights, Tensor! packed, Tensor! sfb)")
def _quantize(weights: Tensor, packed: Tensor, sfb: Tensor) -> None:
    check = Check("quantize_weights_nvfp4_bf16")
    check.arch(ARCH, "11.0", "12.0", "12.1")
    check.tensor("weights", weights, BF16, ("N", "K"))
    check.multiple("axis 1 of weights", check.sizes["K"], 32)
    codes, scales = nvfp4.quantize(weights)
    packed.copy_(codes)
    sfb.copy_(scales)


@OPS.op(
    "grouped_w4a4_gemv_from_bf16(Tensor activations, Tensor weight_stack, Tensor sfb_stack, "
    "Tensor alpha_stack, Tensor expert_idx, Tensor! packed, Tensor! sfa, Tensor! out)"
)
def _w4a4(
    activations: Tensor,
    weight_stack: Tensor,
    sfb_stack: Tensor,
    alpha_stack: Tensor,
    expert_idx: Tensor,
    packed: Tensor,
    sfa: Tensor,
    out: Tensor,
) -> None:
    check = Check("grouped_w4a4_gemv_from_bf16")
    check.arch(ARCH, "12.0", "12.1")
    rows, columns = check.tensor("activations", activations, BF16, ("M", "K"))
    check.multiple("axis 1 of activations", columns, 32)
    check.tensor("weight_stack", weight_stack, U8, ("E", "N", columns // 2))
    wanted = nvfp4.swizzled_bytes(check.sizes["N"], columns)
    check.tensor("sfb_stack", sfb_stack, U8, ("E", wanted))
    _experts(check, alpha_stack, expert_idx)
    check.tensor("packed", packed, U8, ("M", columns // 2))
    check.tensor("sfa", sfa, U8, (nvfp4.swizzled_bytes(rows, columns),))
    check.tensor("out", out, BF16, ("M", "N"))
    codes, scales = nvfp4.quantize(activations)
    packed.copy_(codes)
    sfa.copy_(scales)
    x = nvfp4.dequantize(codes, scales)
    _by_row(x, weight_stack, sfb_stack, alpha_stack, expert_idx, out)


@OPS.op(
    "grouped_w4a16_gemv_bf16(Tensor activations, Tensor weight_stack, Tensor sfb_stack, "
    "Tensor alpha_stack, Tensor expert_idx, int n, int w_stride, int sfb_stride, Tensor! out)"
)
def _w4a16(
    activations: Tensor,
    weight_stack: Tensor,
    sfb_stack: Tensor,
    alpha_stack: Tensor,
    expert_idx: Tensor,
    n: int,
    w_stride: int,
    sfb_stride: int,
    out: Tensor,
) -> None:
    check = Check("grouped_w4a16_gemv_bf16")
    check.arch(ARCH, "11.0", "12.0", "12.1")
    _, columns = check.tensor("activations", activations, BF16, ("M", "K"))
    check.multiple("axis 1 of activations", columns, 32)
    _experts(check, alpha_stack, expert_idx)
    experts = check.sizes["E"]
    check.require("n", n > 0, f"{n}")
    for name, stride, wanted, stack_name, stack in (
        ("w_stride", w_stride, n * columns // 2, "weight_stack", weight_stack),
        ("sfb_stride", sfb_stride, nvfp4.swizzled_bytes(n, columns), "sfb_stack", sfb_stack),
    ):
        check.tensor(stack_name, stack, U8)
        check.require(name, stride >= wanted, f"{stride} bytes an expert, which has {wanted}")
        check.multiple(name, stride, 16)
        least = (experts - 1) * stride + wanted
        found = stack.numel()
        check.require(stack_name, found >= least, f"{found} bytes for {experts} of {stride}")
    check.tensor("out", out, BF16, ("M", n))
    codes = weight_stack.as_strided((experts, n, columns // 2), (w_stride, columns // 2, 1))
    bytes_each = nvfp4.swizzled_bytes(n, columns)
    scales = sfb_stack.as_strided((experts, bytes_each), (sfb_stride, 1))
    _by_row(activations.float(), codes, scales, alpha_stack, expert_idx, out)


# ---------------------------------------------------------------- entry points


def quantize_weights_nvfp4_bf16(weights: Tensor) -> tuple[Tensor, Tensor]:
    """weights bf16 [N, K] as codes uint8 [N, K / 2] and tiled scales uint8."""
    has_rank("quantize_weights_nvfp4_bf16", 2, weights=weights)
    rows, columns = weights.shape
    packed = weights.new_empty((rows, columns // 2), dtype=U8)
    sfb = weights.new_empty((nvfp4.swizzled_bytes(rows, columns),), dtype=U8)
    _quantize(weights, packed, sfb)
    return packed, sfb


def grouped_w4a4_gemv_from_bf16(
    activations: Tensor,
    weight_stack: Tensor,
    sfb_stack: Tensor,
    alpha_stack: Tensor,
    expert_idx: Tensor,
    *,
    packed: Tensor | None = None,
    sfa: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """activations bf16 [M, K], quantised, times the weights of their experts: bf16 [M, N].

    weight_stack uint8 [E, N, K / 2]; sfb_stack uint8 [E, bytes]; alpha_stack float32 [E];
    expert_idx int32 [M].
    """
    name = "grouped_w4a4_gemv_from_bf16"
    has_rank(name, 2, activations=activations)
    has_rank(name, 3, weight_stack=weight_stack)
    rows, columns = activations.shape
    if packed is None:
        packed = activations.new_empty((rows, columns // 2), dtype=U8)
    if sfa is None:
        sfa = activations.new_empty((nvfp4.swizzled_bytes(rows, columns),), dtype=U8)
    if out is None:
        out = activations.new_empty((rows, weight_stack.shape[1]), dtype=BF16)
    _w4a4(activations, weight_stack, sfb_stack, alpha_stack, expert_idx, packed, sfa, out)
    return out


def grouped_w4a16_gemv_bf16(
    activations: Tensor,
    weight_stack: Tensor,
    sfb_stack: Tensor,
    alpha_stack: Tensor,
    expert_idx: Tensor,
    *,
    n: int,
    w_stride: int,
    sfb_stride: int,
    out: Tensor | None = None,
) -> Tensor:
    """activations bf16 [M, K] times the weights of their experts: bf16 [M, n].

    The stacks are bytes, an expert every w_stride and sfb_stride; else as the form with A4.
    """
    has_rank("grouped_w4a16_gemv_bf16", 2, activations=activations)
    if out is None:
        out = activations.new_empty((activations.shape[0], n), dtype=BF16)
    _w4a16(
        activations,
        weight_stack,
        sfb_stack,
        alpha_stack,
        expert_idx,
        n,
        w_stride,
        sfb_stride,
        out,
    )
    return out
