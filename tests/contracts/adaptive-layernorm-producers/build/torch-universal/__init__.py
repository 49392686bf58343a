# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/adaptive-layernorm-producers version 1: LayerNorms that end in codes.

A norm without weights of its own, times 1 + scale, plus shift, taken in float32 and rounded to
bfloat16; that is divided by the activation's scale and saturated to E4M3, or put into blocks of
NVFP4.
"""

from __future__ import annotations

from torch import Tensor
from torch.nn import functional as nnf

from ._shared import fp8, nvfp4
from ._shared.checking import BF16, F32, FP8, U8, Check, Ops, has_rank

ARCH: str | None = None
"""The compute capability played; None is one that every op runs on."""

OPS = Ops(__name__)


def _producer(x: Tensor, scale: Tensor | None, shift: Tensor | None, eps: float) -> Tensor:
    """The norm rounded to bfloat16, as float32."""
    normed = nnf.layer_norm(x.float(), x.shape[-1:], eps=eps)
    if scale is not None and shift is not None:
        normed = normed * (1 + scale.float()) + shift.float()
    return normed.bfloat16().float()


@OPS.op(
    "ada_layer_norm_quant_fp8_bf16(Tensor x, Tensor scale, Tensor shift, Tensor act_scale, "
    "float eps, Tensor! out)"
)
def _quant_fp8(
    x: Tensor, scale: Tensor, shift: Tensor, act_scale: Tensor, eps: float, out: Tensor
) -> None:
    check = Check("ada_layer_norm_quant_fp8_bf16")
    check.tensor("x", x, BF16, ("M", "D"))
    check.multiple("axis 1 of x", check.sizes["D"], 2)
    check.tensor("scale", scale, BF16, ("D",))
    check.tensor("shift", shift, BF16, ("D",))
    check.scale("act_scale", act_scale)
    check.eps(eps)
    check.tensor("out", out, FP8, ("M", "D"))
    out.copy_(fp8.quantize(_producer(x, scale, shift, eps), act_scale))


@OPS.op(
    "ada_layer_norm_quant_fp8_ptok_table_bf16(Tensor x, Tensor temb, Tensor table, "
    "Tensor act_scale, int shift_idx, int scale_idx, float eps, Tensor! out)"
)
def _quant_fp8_ptok(
    x: Tensor,
    temb: Tensor,
    table: Tensor,
    act_scale: Tensor,
    shift_idx: int,
    scale_idx: int,
    eps: float,
    out: Tensor,
) -> None:
    check = Check("ada_layer_norm_quant_fp8_ptok_table_bf16")
    check.tensor("x", x, BF16, ("S", "D"))
    check.multiple("axis 1 of x", check.sizes["D"], 2)
    check.tensor("temb", temb, BF16, ("S", "C", "D"))
    check.tensor("table", table, F32, ("C", "D"))
    check.scale("act_scale", act_scale)
    chunks = check.sizes["C"]
    for name, index in (("shift_idx", shift_idx), ("scale_idx", scale_idx)):
        check.require(name, 0 <= index < chunks, f"{index} is not in 0..{chunks - 1}")
    check.eps(eps)
    check.tensor("out", out, FP8, ("S", "D"))
    scale = temb[:, scale_idx].float() + table[scale_idx]
    shift = temb[:, shift_idx].float() + table[shift_idx]
    out.copy_(fp8.quantize(_producer(x, scale, shift, eps), act_scale))


def _write_nvfp4(check: Check, normed: Tensor, packed: Tensor, sf_swizzled: Tensor) -> None:
    rows, columns = normed.shape
    check.tensor("packed", packed, U8, (rows, columns // 2))
    check.tensor("sf_swizzled", sf_swizzled, U8)
    wanted = nvfp4.swizzled_bytes(rows, columns)
    found = sf_swizzled.numel()
    check.require("sf_swizzled", found == wanted, f"{found} bytes, not {wanted}")
    codes, scales = nvfp4.quantize(normed)
    packed.copy_(codes)
    sf_swizzled.copy_(scales.view(sf_swizzled.shape))


@OPS.op(
    "ada_layer_norm_quant_nvfp4_swizzled_bf16(Tensor x, Tensor scale, Tensor shift, float eps, "
    "Tensor! packed, Tensor! sf_swizzled)"
)
def _quant_nvfp4(
    x: Tensor, scale: Tensor, shift: Tensor, eps: float, packed: Tensor, sf_swizzled: Tensor
) -> None:
    check = Check("ada_layer_norm_quant_nvfp4_swizzled_bf16")
    check.tensor("x", x, BF16, ("M", "D"))
    check.multiple("axis 1 of x", check.sizes["D"], 16)
    check.tensor("scale", scale, BF16, ("D",))
    check.tensor("shift", shift, BF16, ("D",))
    check.eps(eps)
    _write_nvfp4(check, _producer(x, scale, shift, eps), packed, sf_swizzled)


@OPS.op(
    "layer_norm_no_affine_quant_nvfp4_swizzled_bf16(Tensor x, float eps, Tensor! packed, "
    "Tensor! sf_swizzled)"
)
def _no_affine_nvfp4(x: Tensor, eps: float, packed: Tensor, sf_swizzled: Tensor) -> None:
    check = Check("layer_norm_no_affine_quant_nvfp4_swizzled_bf16")
    check.arch(ARCH, "11.0")
    check.tensor("x", x, BF16, ("M", "D"))
    check.multiple("axis 1 of x", check.sizes["D"], 16)
    check.eps(eps)
    _write_nvfp4(check, _producer(x, None, None, eps), packed, sf_swizzled)


# ---------------------------------------------------------------- entry points


def ada_layer_norm_quant_fp8_bf16(
    x: Tensor,
    scale: Tensor,
    shift: Tensor,
    act_scale: Tensor,
    eps: float = 1e-5,
    out: Tensor | None = None,
) -> Tensor:
    """x bf16 [M, D] normed, times 1 + scale [D], plus shift [D], over act_scale: FP8 [M, D]."""
    has_rank("ada_layer_norm_quant_fp8_bf16", 2, x=x)
    if out is None:
        out = x.new_empty(x.shape, dtype=FP8)
    _quant_fp8(x, scale, shift, act_scale, eps, out)
    return out


def ada_layer_norm_quant_fp8_ptok_table_bf16(
    x: Tensor,
    temb: Tensor,
    table: Tensor,
    act_scale: Tensor,
    shift_idx: int,
    scale_idx: int,
    eps: float = 1e-5,
    out: Tensor | None = None,
) -> Tensor:
    """The same with a scale and shift for each row of x bf16 [S, D]: FP8 [S, D].

    temb   bf16 [S, C, D], table f32 [C, D]: chunk i of a row is temb[row, i] + table[i]
    """
    has_rank("ada_layer_norm_quant_fp8_ptok_table_bf16", 2, x=x)
    if out is None:
        out = x.new_empty(x.shape, dtype=FP8)
    _quant_fp8_ptok(x, temb, table, act_scale, shift_idx, scale_idx, eps, out)
    return out


def _allocate(x: Tensor, packed: Tensor | None, sf: Tensor | None) -> tuple[Tensor, Tensor]:
    rows, columns = x.shape
    if packed is None:
        packed = x.new_empty((rows, columns // 2), dtype=U8)
    if sf is None:
        sf = x.new_empty(nvfp4.swizzled_bytes(rows, columns), dtype=U8)
    return packed, sf


def ada_layer_norm_quant_nvfp4_swizzled_bf16(
    x: Tensor,
    scale: Tensor,
    shift: Tensor,
    eps: float = 1e-5,
    packed: Tensor | None = None,
    sf_swizzled: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """x bf16 [M, D] normed, times 1 + scale [D], plus shift [D]: NVFP4 codes [M, D/2], scales."""
    has_rank("ada_layer_norm_quant_nvfp4_swizzled_bf16", 2, x=x)
    packed, sf_swizzled = _allocate(x, packed, sf_swizzled)
    _quant_nvfp4(x, scale, shift, eps, packed, sf_swizzled)
    return packed, sf_swizzled


def layer_norm_no_affine_quant_nvfp4_swizzled_bf16(
    x: Tensor,
    eps: float = 1e-5,
    packed: Tensor | None = None,
    sf_swizzled: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """x bf16 [M, D] normed: NVFP4 codes [M, D/2] and their tiled scales. sm 11.0 only."""
    has_rank("layer_norm_no_affine_quant_nvfp4_swizzled_bf16", 2, x=x)
    packed, sf_swizzled = _allocate(x, packed, sf_swizzled)
    _no_affine_nvfp4(x, eps, packed, sf_swizzled)
    return packed, sf_swizzled
