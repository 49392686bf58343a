# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/flashrt-fp8-ffn version 1: linears with a bias and GELU MLPs in static FP8.

Products are taken in float32; a bias is added before the one rounding to bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as nnf

from ._shared import fp8
from ._shared.checking import BF16, FP8, Check, Ops, has_rank, require

OPS = Ops(__name__)

# ---------------------------------------------------------------- ops


@OPS.op(
    "fp8_gemm_bf16(Tensor input, Tensor weight, Tensor input_scale, Tensor weight_scale, "
    "Tensor! out)"
)
def _fp8_gemm(
    input: Tensor, weight: Tensor, input_scale: Tensor, weight_scale: Tensor, out: Tensor
) -> None:
    check = Check("fp8_gemm_bf16")
    check.tensor("input", input, FP8, ("M", "K"))
    _check_linear(check, "M", weight, {"input_scale": input_scale, "weight_scale": weight_scale})
    check.tensor("out", out, BF16, ("M", "N"))
    out.copy_(fp8.product(input, weight, input_scale, weight_scale))


def _check_linear(check: Check, rows: str, weight: Tensor, scales: dict[str, Tensor]) -> None:
    check.tensor("weight", weight, FP8, ("N", "K"))
    for name, scale in scales.items():
        check.scale(name, scale)
    check.multiple("axis 1 of weight", check.sizes["K"], 16)
    check.multiple("axis 0 of weight", check.sizes["N"], 16)


@OPS.op(
    "fp8_linear_bias_bf16(Tensor input, Tensor weight, Tensor bias, Tensor input_scale, "
    "Tensor weight_scale, Tensor! out)"
)
def _linear_bias(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    input_scale: Tensor,
    weight_scale: Tensor,
    out: Tensor,
) -> None:
    check = Check("fp8_linear_bias_bf16")
    check.tensor("input", input, FP8, ("M", "K"))
    _check_linear(check, "M", weight, {"input_scale": input_scale, "weight_scale": weight_scale})
    check.tensor("bias", bias, BF16, ("N",))
    check.tensor("out", out, BF16, ("M", "N"))
    out.copy_(fp8.product(input, weight, input_scale, weight_scale) + bias.float())


@OPS.op(
    "bf16_fp8_linear_bias_bf16(Tensor input, Tensor weight, Tensor bias, Tensor input_scale, "
    "Tensor weight_scale, Tensor! input_fp8, Tensor! out)"
)
def _bf16_linear_bias(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    input_scale: Tensor,
    weight_scale: Tensor,
    input_fp8: Tensor,
    out: Tensor,
) -> None:
    check = Check("bf16_fp8_linear_bias_bf16")
    _quantize_rows(check, input, input_scale, input_fp8)
    _check_linear(check, "Mp", weight, {"weight_scale": weight_scale})
    check.tensor("bias", bias, BF16, ("N",))
    check.tensor("out", out, BF16, ("Mp", "N"))
    out.copy_(fp8.product(input_fp8, weight, input_scale, weight_scale) + bias.float())


def _quantize_rows(check: Check, input: Tensor, input_scale: Tensor, input_fp8: Tensor) -> None:
    """The codes of the input's M rows, then zeros up to Mp."""
    rows, _ = check.tensor("input", input, BF16, ("M", "K"))
    check.scale("input_scale", input_scale)
    padded, _ = check.tensor("input_fp8", input_fp8, FP8, ("Mp", "K"))
    check.require("input_fp8", padded >= rows, f"{padded} rows for {rows} of input")
    input_fp8.zero_()
    input_fp8[:rows].copy_(fp8.quantize(input, input_scale))


def _mlp(
    check: Check,
    rows: str,
    input: Tensor,
    weights: tuple[Tensor, Tensor, Tensor, Tensor],
    scales: tuple[Tensor, Tensor, Tensor, Tensor],
    hidden_bf16: Tensor,
    hidden_fp8: Tensor,
    out: Tensor,
) -> None:
    up_weight, up_bias, down_weight, down_bias = weights
    names = ("input_scale", "up_weight_scale", "hidden_scale", "down_weight_scale")
    check.tensor("up_weight", up_weight, FP8, ("H", "K"))
    check.tensor("up_bias", up_bias, BF16, ("H",))
    check.tensor("down_weight", down_weight, FP8, ("N", "H"))
    check.tensor("down_bias", down_bias, BF16, ("N",))
    for name, scale in zip(names, scales, strict=True):
        check.scale(name, scale)
    check.tensor("hidden_bf16", hidden_bf16, BF16, (rows, "H"))
    check.tensor("hidden_fp8", hidden_fp8, FP8, (rows, "H"))
    check.tensor("out", out, BF16, (rows, "N"))
    check.multiple("axis 1 of up_weight", check.sizes["K"], 16)
    check.multiple("axis 0 of up_weight", check.sizes["H"], 16)
    check.multiple("axis 0 of down_weight", check.sizes["N"], 16)
    input_scale, up_scale, hidden_scale, down_scale = scales
    hidden_bf16.copy_(fp8.product(input, up_weight, input_scale, up_scale) + up_bias.float())
    hidden = nnf.gelu(hidden_bf16.float(), approximate="tanh")
    hidden_fp8.copy_(fp8.quantize(hidden, hidden_scale))
    out.copy_(fp8.product(hidden_fp8, down_weight, hidden_scale, down_scale) + down_bias.float())


_MLP = (
    "Tensor input, Tensor up_weight, Tensor up_bias, Tensor down_weight, Tensor down_bias, "
    "Tensor input_scale, Tensor up_weight_scale, Tensor hidden_scale, Tensor down_weight_scale"
)


def _register_mlp(name: str) -> Callable[..., None]:
    @OPS.op(f"{name}({_MLP}, Tensor! hidden_bf16, Tensor! hidden_fp8, Tensor! out)")
    def op(input: Tensor, *rest: Tensor) -> None:
        check = Check(name)
        check.tensor("input", input, FP8, ("M", "K"))
        _mlp(check, "M", input, rest[:4], rest[4:8], *rest[8:])

    return op


def _register_bf16_mlp(name: str) -> Callable[..., None]:
    @OPS.op(
        f"{name}({_MLP}, Tensor! input_fp8, Tensor! hidden_bf16, Tensor! hidden_fp8, Tensor! out)"
    )
    def op(input: Tensor, *rest: Tensor) -> None:
        check = Check(name)
        _quantize_rows(check, input, rest[4], rest[8])
        _mlp(check, "Mp", rest[8], rest[:4], rest[4:8], *rest[9:])

    return op


_gelu_mlp = _register_mlp("fp8_gelu_mlp_bf16")
_gelu_mlp_v2 = _register_mlp("fp8_gelu_mlp_v2_bf16")
_bf16_gelu_mlp = _register_bf16_mlp("bf16_fp8_gelu_mlp_bf16")
_bf16_gelu_mlp_v2 = _register_bf16_mlp("bf16_fp8_gelu_mlp_v2_bf16")

# ---------------------------------------------------------------- entry points


def fp8_gemm_bf16(
    input: Tensor,
    weight: Tensor,
    input_scale: Tensor,
    weight_scale: Tensor,
    out: Tensor | None = None,
) -> Tensor:
    """input FP8 [M, K] times weight FP8 [N, K] transposed, both under their scales: bf16 [M, N]."""
    has_rank("fp8_gemm_bf16", 2, input=input, weight=weight)
    if out is None:
        out = input.new_empty((input.shape[0], weight.shape[0]), dtype=BF16)
    _fp8_gemm(input, weight, input_scale, weight_scale, out)
    return out


def fp8_linear_bias_bf16(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    input_scale: Tensor,
    weight_scale: Tensor,
    out: Tensor | None = None,
) -> Tensor:
    """fp8_gemm_bf16 plus bias bf16 [N]."""
    has_rank("fp8_linear_bias_bf16", 2, input=input, weight=weight)
    if out is None:
        out = input.new_empty((input.shape[0], weight.shape[0]), dtype=BF16)
    _linear_bias(input, weight, bias, input_scale, weight_scale, out)
    return out


def bf16_fp8_linear_bias_bf16(
    input: Tensor,
    weight: Tensor,
    bias: Tensor,
    input_scale: Tensor,
    weight_scale: Tensor,
    input_fp8: Tensor | None = None,
    out: Tensor | None = None,
    *,
    pad_to: int | None = None,
) -> Tensor:
    """input bf16 [M, K], quantised by input_scale, then fp8_linear_bias_bf16.

    Scratch and out have Mp >= M rows; the result is the view of the first M.
    """
    name = "bf16_fp8_linear_bias_bf16"
    has_rank(name, 2, input=input, weight=weight)
    rows = _padded(name, input.shape[0], pad_to)
    if input_fp8 is None:
        input_fp8 = input.new_empty((rows, input.shape[1]), dtype=FP8)
    if out is None:
        out = input.new_empty((rows, weight.shape[0]), dtype=BF16)
    _bf16_linear_bias(input, weight, bias, input_scale, weight_scale, input_fp8, out)
    return out[: input.shape[0]]


def _padded(name: str, rows: int, pad_to: int | None) -> int:
    if pad_to is None:
        return rows
    require(name, "pad_to", pad_to >= rows, f"{pad_to} rows for {rows} of input")
    return pad_to


Outs = tuple[Tensor | None, Tensor | None, Tensor | None]


def _scratch(
    name: str, input: Tensor, up_weight: Tensor, down_weight: Tensor, rows: int, outs: Outs
) -> tuple[Tensor, Tensor, Tensor]:
    """The buffers that were handed in, and new ones for those that were not."""
    has_rank(name, 2, input=input, up_weight=up_weight, down_weight=down_weight)
    hidden_bf16, hidden_fp8, out = outs
    hidden = up_weight.shape[0]
    if hidden_bf16 is None:
        hidden_bf16 = input.new_empty((rows, hidden), dtype=BF16)
    if hidden_fp8 is None:
        hidden_fp8 = input.new_empty((rows, hidden), dtype=FP8)
    if out is None:
        out = input.new_empty((rows, down_weight.shape[0]), dtype=BF16)
    return hidden_bf16, hidden_fp8, out


def _entry(name: str, op: Callable[..., None]) -> Callable[..., Tensor]:
    def entry(
        input: Tensor,
        up_weight: Tensor,
        up_bias: Tensor,
        down_weight: Tensor,
        down_bias: Tensor,
        input_scale: Tensor,
        up_weight_scale: Tensor,
        hidden_scale: Tensor,
        down_weight_scale: Tensor,
        hidden_bf16: Tensor | None = None,
        hidden_fp8: Tensor | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        """A biased product [H, K], tanh-GELU, FP8 by hidden_scale, a biased product [N, H].

        input FP8 [M, K]; biases bf16 [H] and [N]; out bf16 [M, N].
        """
        has_rank(name, 2, input=input)
        outs = (hidden_bf16, hidden_fp8, out)
        made = _scratch(name, input, up_weight, down_weight, input.shape[0], outs)
        scales = (input_scale, up_weight_scale, hidden_scale, down_weight_scale)
        op(input, up_weight, up_bias, down_weight, down_bias, *scales, *made)
        return made[-1]

    return entry


def _bf16_entry(name: str, op: Callable[..., None]) -> Callable[..., Tensor]:
    def entry(
        input: Tensor,
        up_weight: Tensor,
        up_bias: Tensor,
        down_weight: Tensor,
        down_bias: Tensor,
        input_scale: Tensor,
        up_weight_scale: Tensor,
        hidden_scale: Tensor,
        down_weight_scale: Tensor,
        input_fp8: Tensor | None = None,
        hidden_bf16: Tensor | None = None,
        hidden_fp8: Tensor | None = None,
        out: Tensor | None = None,
        *,
        pad_to: int | None = None,
    ) -> Tensor:
        """bf16 [M, K], quantised by input_scale, then the MLP.

        Scratch and out have Mp >= M rows; the result is the view of the first M.
        """
        has_rank(name, 2, input=input)
        rows = _padded(name, input.shape[0], pad_to)
        outs = (hidden_bf16, hidden_fp8, out)
        made = _scratch(name, input, up_weight, down_weight, rows, outs)
        if input_fp8 is None:
            input_fp8 = input.new_empty((rows, input.shape[1]), dtype=FP8)
        scales = (input_scale, up_weight_scale, hidden_scale, down_weight_scale)
        op(input, up_weight, up_bias, down_weight, down_bias, *scales, input_fp8, *made)
        return made[-1][: input.shape[0]]

    return entry


fp8_gelu_mlp_bf16 = _entry("fp8_gelu_mlp_bf16", _gelu_mlp)
fp8_gelu_mlp_v2_bf16 = _entry("fp8_gelu_mlp_v2_bf16", _gelu_mlp_v2)
bf16_fp8_gelu_mlp_bf16 = _bf16_entry("bf16_fp8_gelu_mlp_bf16", _bf16_gelu_mlp)
bf16_fp8_gelu_mlp_v2_bf16 = _bf16_entry("bf16_fp8_gelu_mlp_v2_bf16", _bf16_gelu_mlp_v2)
