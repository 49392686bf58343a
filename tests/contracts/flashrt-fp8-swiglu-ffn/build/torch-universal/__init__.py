# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/flashrt-fp8-swiglu-ffn version 1: gated MLPs in static FP8.

Codes are E4M3; every product is taken in float32 and stored in bfloat16.
"""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor
from torch.nn import functional as nnf

from ._shared import fp8
from ._shared.checking import BF16, FP8, Check, Ops, has_rank, require

ARCH: str | None = None
"""The compute capability played. Without pad_to the rows are padded on 11.0 only."""

OPS = Ops(__name__)

Act = Callable[[Tensor], Tensor]


def _gelu(x: Tensor) -> Tensor:
    return nnf.gelu(x, approximate="tanh")


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
    check.tensor("weight", weight, FP8, ("N", "K"))
    check.scale("input_scale", input_scale)
    check.scale("weight_scale", weight_scale)
    check.tensor("out", out, BF16, ("M", "N"))
    check.multiple("axis 1 of input", check.sizes["K"], 16)
    check.multiple("axis 0 of weight", check.sizes["N"], 16)
    out.copy_(fp8.product(input, weight, input_scale, weight_scale))


def _check_mlp(
    check: Check,
    rows: str,
    gate_up_weight: Tensor,
    down_weight: Tensor,
    scales: dict[str, Tensor],
    gate_up_bf16: Tensor,
    hidden_fp8: Tensor,
    out: Tensor,
) -> None:
    """What all forms of the MLP share; the input, with K, is checked before."""
    check.tensor("gate_up_weight", gate_up_weight, FP8, ("2H", "K"))
    check.multiple("axis 0 of gate_up_weight", check.sizes["2H"], 2)
    hidden = check.sizes["2H"] // 2
    check.tensor("down_weight", down_weight, FP8, ("N", hidden))
    for name, scale in scales.items():
        check.scale(name, scale)
    check.tensor("gate_up_bf16", gate_up_bf16, BF16, (rows, "2H"))
    check.tensor("hidden_fp8", hidden_fp8, FP8, (rows, hidden))
    check.tensor("out", out, BF16, (rows, "N"))
    check.multiple("axis 1 of gate_up_weight", check.sizes["K"], 16)
    check.multiple("axis 1 of down_weight", hidden, 16)
    check.multiple("axis 0 of down_weight", check.sizes["N"], 16)


def _mlp(
    act: Act,
    input: Tensor,
    gate_up_weight: Tensor,
    down_weight: Tensor,
    scales: dict[str, Tensor],
    gate_up_bf16: Tensor,
    hidden_fp8: Tensor,
    out: Tensor,
) -> None:
    gate_up_bf16.copy_(
        fp8.product(input, gate_up_weight, scales["input_scale"], scales["gate_up_weight_scale"])
    )
    gate, up = gate_up_bf16.float().chunk(2, dim=1)
    hidden_fp8.copy_(fp8.quantize(act(gate) * up, scales["hidden_scale"]))
    out.copy_(
        fp8.product(hidden_fp8, down_weight, scales["hidden_scale"], scales["down_weight_scale"])
    )


_WEIGHTS = (
    "Tensor gate_up_weight, Tensor down_weight, Tensor input_scale, "
    "Tensor gate_up_weight_scale, Tensor hidden_scale, Tensor down_weight_scale"
)
_SCALES = ("input_scale", "gate_up_weight_scale", "hidden_scale", "down_weight_scale")


def _register_mlp(name: str, act: Act) -> Callable[..., None]:
    @OPS.op(
        f"{name}(Tensor input, {_WEIGHTS}, Tensor! gate_up_bf16, Tensor! hidden_fp8, Tensor! out)"
    )
    def op(
        input: Tensor,
        gate_up_weight: Tensor,
        down_weight: Tensor,
        s0: Tensor,
        s1: Tensor,
        s2: Tensor,
        s3: Tensor,
        gate_up_bf16: Tensor,
        hidden_fp8: Tensor,
        out: Tensor,
    ) -> None:
        check = Check(name)
        check.tensor("input", input, FP8, ("M", "K"))
        scales = dict(zip(_SCALES, (s0, s1, s2, s3), strict=True))
        rest = (gate_up_weight, down_weight, scales, gate_up_bf16, hidden_fp8, out)
        _check_mlp(check, "M", *rest)
        _mlp(act, input, *rest)

    return op


def _register_bf16_mlp(name: str, act: Act) -> Callable[..., None]:
    @OPS.op(
        f"{name}(Tensor input, {_WEIGHTS}, Tensor! input_fp8, Tensor! gate_up_bf16, "
        "Tensor! hidden_fp8, Tensor! out)"
    )
    def op(
        input: Tensor,
        gate_up_weight: Tensor,
        down_weight: Tensor,
        s0: Tensor,
        s1: Tensor,
        s2: Tensor,
        s3: Tensor,
        input_fp8: Tensor,
        gate_up_bf16: Tensor,
        hidden_fp8: Tensor,
        out: Tensor,
    ) -> None:
        check = Check(name)
        rows, _ = check.tensor("input", input, BF16, ("M", "K"))
        padded, _ = check.tensor("input_fp8", input_fp8, FP8, ("Mp", "K"))
        check.require("input_fp8", padded >= rows, f"{padded} rows for {rows} of input")
        scales = dict(zip(_SCALES, (s0, s1, s2, s3), strict=True))
        rest = (gate_up_weight, down_weight, scales, gate_up_bf16, hidden_fp8, out)
        _check_mlp(check, "Mp", *rest)
        input_fp8.zero_()
        input_fp8[:rows].copy_(fp8.quantize(input, s0))
        _mlp(act, input_fp8, *rest)

    return op


_swiglu = _register_mlp("fp8_swiglu_mlp_bf16", nnf.silu)
_geglu = _register_mlp("fp8_geglu_mlp_bf16", _gelu)
_bf16_swiglu = _register_bf16_mlp("bf16_fp8_swiglu_mlp_bf16", nnf.silu)
_bf16_geglu = _register_bf16_mlp("bf16_fp8_geglu_mlp_bf16", _gelu)

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


def _padded(name: str, rows: int, pad_to: int | None) -> int:
    """Rows of the scratch. Without ``pad_to`` the real wrapper asks the device."""
    if pad_to is None:
        return -(-rows // 64) * 64 if ARCH == "11.0" and 9 <= rows <= 128 else rows
    require(name, "pad_to", pad_to >= rows, f"{pad_to} rows for {rows} of input")
    return pad_to


def fp8_swiglu_mlp_bf16(
    input: Tensor,
    gate_up_weight: Tensor,
    down_weight: Tensor,
    input_scale: Tensor,
    gate_up_weight_scale: Tensor,
    hidden_scale: Tensor,
    down_weight_scale: Tensor,
    gate_up_bf16: Tensor | None = None,
    hidden_fp8: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """silu(gate) * up of FP8 [M, K], requantised by hidden_scale, times down: bf16 [M, N].

    gate_up_weight FP8 [2H, K], the gate's rows first; down_weight FP8 [N, H].
    """
    scales = (input_scale, gate_up_weight_scale, hidden_scale, down_weight_scale)
    name = "fp8_swiglu_mlp_bf16"
    scratch = _scratch(name, input, gate_up_weight, down_weight, gate_up_bf16, hidden_fp8, out)
    _swiglu(input, gate_up_weight, down_weight, *scales, *scratch)
    return scratch[-1]


def fp8_geglu_mlp_bf16(
    input: Tensor,
    gate_up_weight: Tensor,
    down_weight: Tensor,
    input_scale: Tensor,
    gate_up_weight_scale: Tensor,
    hidden_scale: Tensor,
    down_weight_scale: Tensor,
    gate_up_bf16: Tensor | None = None,
    hidden_fp8: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """As fp8_swiglu_mlp_bf16, with tanh-GELU on the gate."""
    scales = (input_scale, gate_up_weight_scale, hidden_scale, down_weight_scale)
    name = "fp8_geglu_mlp_bf16"
    scratch = _scratch(name, input, gate_up_weight, down_weight, gate_up_bf16, hidden_fp8, out)
    _geglu(input, gate_up_weight, down_weight, *scales, *scratch)
    return scratch[-1]


def _scratch(
    name: str,
    input: Tensor,
    gate_up_weight: Tensor,
    down_weight: Tensor,
    gate_up_bf16: Tensor | None,
    hidden_fp8: Tensor | None,
    out: Tensor | None,
    rows: int | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The buffers that were handed in, and new ones for those that were not."""
    has_rank(name, 2, input=input, gate_up_weight=gate_up_weight, down_weight=down_weight)
    rows = input.shape[0] if rows is None else rows
    hidden = gate_up_weight.shape[0]
    if gate_up_bf16 is None:
        gate_up_bf16 = input.new_empty((rows, hidden), dtype=BF16)
    if hidden_fp8 is None:
        hidden_fp8 = input.new_empty((rows, hidden // 2), dtype=FP8)
    if out is None:
        out = input.new_empty((rows, down_weight.shape[0]), dtype=BF16)
    return gate_up_bf16, hidden_fp8, out


def bf16_fp8_swiglu_mlp_bf16(
    input: Tensor,
    gate_up_weight: Tensor,
    down_weight: Tensor,
    input_scale: Tensor,
    gate_up_weight_scale: Tensor,
    hidden_scale: Tensor,
    down_weight_scale: Tensor,
    input_fp8: Tensor | None = None,
    gate_up_bf16: Tensor | None = None,
    hidden_fp8: Tensor | None = None,
    out: Tensor | None = None,
    *,
    pad_to: int | None = None,
) -> Tensor:
    """bf16 [M, K], quantised by input_scale, then fp8_swiglu_mlp_bf16.

    Scratch and out have Mp >= M rows; the result is the view of the first M.
    """
    name = "bf16_fp8_swiglu_mlp_bf16"
    scales = (input_scale, gate_up_weight_scale, hidden_scale, down_weight_scale)
    has_rank(name, 2, input=input)
    rows = _padded(name, input.shape[0], pad_to)
    scratch = _scratch(
        name, input, gate_up_weight, down_weight, gate_up_bf16, hidden_fp8, out, rows
    )
    if input_fp8 is None:
        input_fp8 = input.new_empty((rows, input.shape[1]), dtype=FP8)
    _bf16_swiglu(input, gate_up_weight, down_weight, *scales, input_fp8, *scratch)
    return scratch[-1][: input.shape[0]]


def bf16_fp8_geglu_mlp_bf16(
    input: Tensor,
    gate_up_weight: Tensor,
    down_weight: Tensor,
    input_scale: Tensor,
    gate_up_weight_scale: Tensor,
    hidden_scale: Tensor,
    down_weight_scale: Tensor,
    input_fp8: Tensor | None = None,
    gate_up_bf16: Tensor | None = None,
    hidden_fp8: Tensor | None = None,
    out: Tensor | None = None,
    *,
    pad_to: int | None = None,
) -> Tensor:
    """As bf16_fp8_swiglu_mlp_bf16, with tanh-GELU on the gate."""
    name = "bf16_fp8_geglu_mlp_bf16"
    scales = (input_scale, gate_up_weight_scale, hidden_scale, down_weight_scale)
    has_rank(name, 2, input=input)
    rows = _padded(name, input.shape[0], pad_to)
    scratch = _scratch(
        name, input, gate_up_weight, down_weight, gate_up_bf16, hidden_fp8, out, rows
    )
    if input_fp8 is None:
        input_fp8 = input.new_empty((rows, input.shape[1]), dtype=FP8)
    _bf16_geglu(input, gate_up_weight, down_weight, *scales, input_fp8, *scratch)
    return scratch[-1][: input.shape[0]]
