"""The contract packages of products in FP8, FP4 and INT8: they compute what they say, trace as
the real ones do, and name the argument that breaks the ABI.

Values are held against arithmetic written here from the definition of each format, not against
the helpers that the packages compute with.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as nnf

from tests.contracts import staging

Args = dict[str, Any]
Make = Callable[[ModuleType], Args]

M, K, H, N = 5, 64, 96, 128
E2M1 = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])


def random(*shape: int, seed: int = 0, size: float = 1.0) -> Tensor:
    made = torch.randn(shape, generator=torch.Generator().manual_seed(seed + sum(shape)))
    return (size * made).bfloat16()


def codes(*shape: int, seed: int = 0) -> Tensor:
    return random(*shape, seed=seed).to(torch.float8_e4m3fn)


def scale(value: float) -> Tensor:
    return torch.tensor([value])


def gelu(x: Tensor) -> Tensor:
    return nnf.gelu(x, approximate="tanh")


def to_fp8(x: Tensor, by: Tensor) -> Tensor:
    return (x.float() / by).clamp(-448, 448).to(torch.float8_e4m3fn).float()


def from_nvfp4(packed: Tensor, sf: Tensor) -> Tensor:
    """Value by value, from the layout as the ABI states it."""
    rows, half = packed.shape
    out = torch.zeros(rows, half * 2)
    across = -(-(half * 2 // 16) // 4)
    flat = sf.reshape(-1).view(torch.float8_e4m3fn).float()
    for row in range(rows):
        for column in range(half * 2):
            byte = int(packed[row, column // 2])
            code = byte >> 4 if column % 2 else byte & 15
            value = float(E2M1[code & 7]) * (-1 if code & 8 else 1)
            block = column // 16
            tile = (row // 128) * across + block // 4
            place = tile * 512 + (row % 32) * 16 + (row % 128) // 32 * 4 + block % 4
            out[row, column] = value * float(flat[place])
    return out


def to_nvfp4(rows: int, columns: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    return staging.load("fp4-gemm").quantize_fp4_sfa_bf16(random(rows, columns, seed=seed))


def close(found: Tensor, wanted: Tensor, relative: float = 2.0**-7) -> None:
    """Two roundings to bfloat16 apart at most."""
    assert found.shape == wanted.shape
    worst = (found.float() - wanted.float()).abs().max()
    assert float(worst) <= relative * float(wanted.float().abs().max()), float(worst)


# ---------------------------------------------------------------- right calls


def fp8_gemm(bias: bool = False, wide: bool = False) -> Args:
    made: Args = {
        "input": random(M, K) if wide else codes(M, K),
        "weight": codes(N, K),
        "input_scale": scale(0.5),
        "weight_scale": scale(0.25),
    }
    return made | ({"bias": random(N)} if bias else {})


def gated_mlp(wide: bool) -> Args:
    return {
        "input": random(M, K) if wide else codes(M, K),
        "gate_up_weight": codes(2 * H, K),
        "down_weight": codes(N, H),
        "input_scale": scale(0.5),
        "gate_up_weight_scale": scale(0.125),
        "hidden_scale": scale(0.03),
        "down_weight_scale": scale(0.25),
    }


def gated_value(act: Callable[[Tensor], Tensor], input: Tensor, **a: Tensor) -> Tensor:
    if input.dtype == torch.bfloat16:
        input = to_fp8(input, a["input_scale"])
    both = (a["input_scale"] * input.float()) @ (
        a["gate_up_weight_scale"] * a["gate_up_weight"].float()
    ).T
    both = both.bfloat16().float()
    hidden = act(both[:, :H]) * both[:, H:]
    hidden = a["hidden_scale"] * to_fp8(hidden, a["hidden_scale"])
    return hidden @ (a["down_weight_scale"] * a["down_weight"].float()).T


def gelu_mlp(wide: bool) -> Args:
    return {
        "input": random(M, K) if wide else codes(M, K),
        "up_weight": codes(H, K),
        "up_bias": random(H),
        "down_weight": codes(N, H),
        "down_bias": random(N),
        "input_scale": scale(0.5),
        "up_weight_scale": scale(0.125),
        "hidden_scale": scale(0.03),
        "down_weight_scale": scale(0.25),
    }


def gelu_value(input: Tensor, **a: Tensor) -> Tensor:
    if input.dtype == torch.bfloat16:
        input = to_fp8(input, a["input_scale"])
    up = (a["input_scale"] * input.float()) @ (a["up_weight_scale"] * a["up_weight"].float()).T
    hidden = gelu((up + a["up_bias"].float()).bfloat16().float())
    hidden = a["hidden_scale"] * to_fp8(hidden, a["hidden_scale"])
    down = a["down_weight_scale"] * a["down_weight"].float()
    return hidden @ down.T + a["down_bias"].float()


def linear_value(input: Tensor, weight: Tensor, **a: Any) -> Tensor:
    if input.dtype == torch.bfloat16:
        input = to_fp8(input, a["input_scale"])
    by = a.get("alpha")
    by = a["input_scale"] * a["weight_scale"] if by is None else by
    out = by * (input.float() @ weight.float().T)
    for name in ("bias", "residual"):
        out = out + a[name].float() if name in a else out
    return out


def nvfp4_operands() -> Args:
    (a, sfa), (b, sfb) = to_nvfp4(M, K), to_nvfp4(N, K, seed=1)
    return {"a_packed": a, "b_packed": b, "sfa": sfa, "sfb": sfb}


def nvfp4_value(a_packed: Tensor, b_packed: Tensor, sfa: Tensor, sfb: Tensor, **a: Any) -> Tensor:
    out = a.get("alpha", 1.0) * (from_nvfp4(a_packed, sfa) @ from_nvfp4(b_packed, sfb).T)
    for name in ("bias", "residual"):
        out = out + a[name].float() if name in a else out
    return out


def w8_ffn(m: ModuleType) -> Args:
    gate_up, gate_up_scale = m.quantize_w8_weight_bf16(random(128, K))
    down, down_scale = m.quantize_w8_weight_bf16(random(N, 64))
    x = random(M, K)
    return {
        "x": x,
        "gate_up": gate_up,
        "gate_up_scale": gate_up_scale,
        "down": down,
        "down_scale": down_scale,
    }


def w4_ffn(m: ModuleType) -> Args:
    gate_up, gate_up_sfb = m.quantize_w4_weight_bf16(random(128, K))
    down, down_sfb = m.quantize_w4_weight_bf16(random(N, 64))
    return {
        "x": random(M, K),
        "gate_up_weight": gate_up,
        "gate_up_sfb": gate_up_sfb,
        "down_weight": down,
        "down_sfb": down_sfb,
    }


def weight_only_value(
    act: Callable[[Tensor], Tensor], x: Tensor, gate_up: Tensor, down: Tensor
) -> Tensor:
    gate, up = (x.float() @ gate_up.T).chunk(2, dim=1)
    return (act(gate) * up) @ down.T


def w8_value(act: Callable[[Tensor], Tensor], **a: Tensor) -> Tensor:
    gate_up = a["gate_up"].float() * a["gate_up_scale"][:, None]
    return weight_only_value(act, a["x"], gate_up, a["down"].float() * a["down_scale"][:, None])


def w4_value(act: Callable[[Tensor], Tensor], **a: Tensor) -> Tensor:
    gate_up = from_nvfp4(a["gate_up_weight"], a["gate_up_sfb"])
    return weight_only_value(act, a["x"], gate_up, from_nvfp4(a["down_weight"], a["down_sfb"]))


def experts(m: ModuleType, flat: bool = False) -> Args:
    made = [m.quantize_weights_nvfp4_bf16(random(32, K, seed=one)) for one in range(3)]
    weights = torch.stack([one for one, _ in made])
    scales = torch.stack([one for _, one in made])
    out: Args = {
        "activations": random(M, K),
        "weight_stack": weights.reshape(-1) if flat else weights,
        "sfb_stack": scales.reshape(-1) if flat else scales,
        "alpha_stack": torch.tensor([1.0, 0.5, 2.0]),
        "expert_idx": torch.tensor([2, 0, 0, 1, 2], dtype=torch.int32),
    }
    if flat:
        out |= {"n": 32, "w_stride": 32 * K // 2, "sfb_stride": scales.shape[1]}
    return out


def experts_value(four: bool, **a: Any) -> Tensor:
    x = a["activations"]
    if four:
        x = from_nvfp4(*staging.load("fp4-gemm").quantize_fp4_sfa_bf16(x))
    weights, scales = a["weight_stack"].view(3, 32, K // 2), a["sfb_stack"].view(3, -1)
    rows = [
        a["alpha_stack"][e] * (from_nvfp4(weights[e], scales[e]) @ x[row].float())
        for row, e in enumerate(a["expert_idx"].tolist())
    ]
    return torch.stack(rows)


def normed(x: Tensor, weight: Tensor, eps: float = 1e-6) -> Tensor:
    x = x.float()
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight.float()


def centred(x: Tensor, weight: Tensor, bias: Tensor, eps: float = 1e-6) -> Tensor:
    x = x.float() - x.float().mean(-1, keepdim=True)
    return x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * weight.float() + bias.float()


SWIGLU, FFN8, EPI = "flashrt-fp8-swiglu-ffn", "flashrt-fp8-ffn", "flashrt-gemm-epilogues"
FP8G, FP4G, FP4O = "fp8-gemm", "fp4-gemm", "fp4-fused-ops"
W, MOE, FUSED = "weight-only-ffn", "grouped-moe-gemv", "transformer-fused-ops"


def alpha(**more: Any) -> Args:
    return {"input": codes(M, K), "weight": codes(N, K), "alpha": 0.125} | more


# Each entry whose one result is in bfloat16: a call and what it computes.
PLAIN: dict[tuple[str, str], tuple[Make, Callable[..., Tensor]]] = {
    (SWIGLU, "fp8_gemm_bf16"): (lambda m: fp8_gemm(), linear_value),
    (SWIGLU, "fp8_swiglu_mlp_bf16"): (
        lambda m: gated_mlp(False),
        lambda **a: gated_value(nnf.silu, **a),
    ),
    (SWIGLU, "fp8_geglu_mlp_bf16"): (
        lambda m: gated_mlp(False),
        lambda **a: gated_value(gelu, **a),
    ),
    (SWIGLU, "bf16_fp8_swiglu_mlp_bf16"): (
        lambda m: gated_mlp(True),
        lambda **a: gated_value(nnf.silu, **a),
    ),
    (SWIGLU, "bf16_fp8_geglu_mlp_bf16"): (
        lambda m: gated_mlp(True),
        lambda **a: gated_value(gelu, **a),
    ),
    (FFN8, "fp8_gemm_bf16"): (lambda m: fp8_gemm(), linear_value),
    (FFN8, "fp8_linear_bias_bf16"): (lambda m: fp8_gemm(bias=True), linear_value),
    (FFN8, "bf16_fp8_linear_bias_bf16"): (lambda m: fp8_gemm(True, True), linear_value),
    (FFN8, "fp8_gelu_mlp_bf16"): (lambda m: gelu_mlp(False), gelu_value),
    (FFN8, "fp8_gelu_mlp_v2_bf16"): (lambda m: gelu_mlp(False), gelu_value),
    (FFN8, "bf16_fp8_gelu_mlp_bf16"): (lambda m: gelu_mlp(True), gelu_value),
    (FFN8, "bf16_fp8_gelu_mlp_v2_bf16"): (lambda m: gelu_mlp(True), gelu_value),
    (EPI, "bf16_linear_bf16"): (
        lambda m: {"x": random(M, K), "w": random(K, N)},
        lambda x, w: x.float() @ w.float(),
    ),
    (EPI, "bf16_linear_bias_bf16"): (
        lambda m: {"x": random(M, K), "w": random(K, N), "bias": random(N)},
        lambda x, w, bias: x.float() @ w.float() + bias.float(),
    ),
    (FP8G, "fp8_linear_bf16"): (lambda m: alpha(), linear_value),
    (FP8G, "fp8_linear_bias_bf16"): (lambda m: alpha(bias=random(N)), linear_value),
    (FP8G, "fp8_linear_bias_residual_bf16"): (
        lambda m: alpha(bias=random(N), residual=random(M, N)),
        linear_value,
    ),
    (FP8G, "fp8_linear_bias_gelu_bf16"): (
        lambda m: alpha(bias=random(N)),
        lambda **a: gelu(linear_value(**a)),
    ),
    (FP4G, "fp4_w4a16_linear_bf16"): (lambda m: nvfp4_operands() | {"alpha": 0.5}, nvfp4_value),
    (FP4G, "fp4_w4a4_gemv_warpsplit_bf16"): (
        lambda m: (
            nvfp4_operands()
            | dict(zip(("a_packed", "sfa"), to_nvfp4(1, K), strict=True))
            | {"alpha": 0.5}
        ),
        nvfp4_value,
    ),
    (FP4G, "nvfp4_gemm_bias_bf16"): (lambda m: nvfp4_operands() | {"bias": random(N)}, nvfp4_value),
    (FP4G, "nvfp4_gemm_bias_residual_bf16"): (
        lambda m: nvfp4_operands() | {"bias": random(N), "residual": random(M, N)},
        nvfp4_value,
    ),
    (FP4G, "nvfp4_gemm_bias_gelu_bf16"): (
        lambda m: nvfp4_operands() | {"bias": random(N), "alpha": 0.5},
        lambda **a: gelu(nvfp4_value(**a)),
    ),
    (W, "w8a16_linear_bf16"): (
        lambda m: dict(
            zip(
                ("x", "weight_int8", "weight_scale"),
                (random(M, K), *m.quantize_w8_weight_bf16(random(N, K))),
                strict=True,
            )
        ),
        lambda x, weight_int8, weight_scale: x.float() @ (weight_int8.T * weight_scale),
    ),
    (W, "w8a16_swiglu_ffn_bf16"): (w8_ffn, lambda **a: w8_value(nnf.silu, **a)),
    (W, "w8a16_geglu_ffn_bf16"): (w8_ffn, lambda **a: w8_value(gelu, **a)),
    (W, "w4a16_swiglu_ffn_bf16"): (w4_ffn, lambda **a: w4_value(nnf.silu, **a)),
    (W, "w4a16_geglu_ffn_bf16"): (w4_ffn, lambda **a: w4_value(gelu, **a)),
    (MOE, "grouped_w4a4_gemv_from_bf16"): (experts, lambda **a: experts_value(True, **a)),
    (MOE, "grouped_w4a16_gemv_bf16"): (
        lambda m: experts(m, flat=True),
        lambda **a: experts_value(False, **a),
    ),
    (FUSED, "rms_norm_gated_silu_bf16"): (
        lambda m: {"x": random(M, K), "gate": random(M, K, seed=1), "weight": random(K)},
        lambda x, gate, weight: normed(x, weight) * nnf.silu(gate.float()),
    ),
}

# Each entry whose one result is FP8: a call and what is quantised, under 0.05.
TO_FP8: dict[tuple[str, str], tuple[Args, Callable[..., Tensor]]] = {
    (EPI, "channel_scale_quantize_fp8_static_bf16"): (
        {"input": random(2, M, K), "channel_scale": random(K)},
        lambda input, channel_scale: input.float() * channel_scale.float(),
    ),
    (FUSED, "quantize_fp8_static_bf16"): ({"x": random(2, M, K)}, lambda x: x),
    (FUSED, "layer_norm_quant_fp8_static_bf16"): (
        {"x": random(M, K), "weight": random(K), "bias": random(K, seed=1)},
        centred,
    ),
    (FUSED, "gate_geglu_merged_quant_fp8_static_bf16"): (
        {"merged": random(M, 2 * K)},
        lambda merged: gelu(merged[:, :K].float()) * merged[:, K:].float(),
    ),
}

# Each entry that gives codes and scales in NVFP4: a call and what is quantised.
TO_NVFP4: dict[tuple[str, str], tuple[Args, Callable[..., Tensor]]] = {
    (FP4G, "quantize_fp4_sfa_bf16"): ({"x": random(M, K)}, lambda x: x),
    (FP4G, "quantize_fp4_sfa_fp16"): ({"x": random(M, K).half()}, lambda x: x),
    (FP4O, "layer_norm_nvfp4_bf16"): (
        {"x": random(M, K), "gamma": random(K), "beta": random(K), "inv_s": random(K).abs()},
        lambda x, gamma, beta, inv_s: centred(x, gamma, beta) * inv_s.float(),
    ),
    (FP4O, "gelu_mul_nvfp4_bf16"): (
        {"merged": random(M, 2 * K)},
        lambda merged: gelu(merged[:, :K].float()) * merged[:, K:].float(),
    ),
    (FP4O, "residual_add_rms_norm_quant_nvfp4_swizzled_bf16"): (
        {"residual": random(M, K), "x": random(M, K, seed=1), "weight": random(K)},
        lambda residual, x, weight: normed((residual.float() + x.float()).bfloat16(), weight),
    ),
    (W, "quantize_w4_weight_bf16"): ({"weight": random(N, K)}, lambda weight: weight),
    (MOE, "quantize_weights_nvfp4_bf16"): ({"weights": random(N, K)}, lambda weights: weights),
}


def ids(table: dict[tuple[str, str], Any]) -> list[str]:
    return [f"{package}.{entry}" for package, entry in table]


def copied(args: Args) -> Args:
    return {name: v.clone() if isinstance(v, Tensor) else v for name, v in args.items()}


@pytest.mark.parametrize("key", PLAIN, ids=ids(PLAIN))
def test_a_right_call_computes_the_op(key: tuple[str, str]) -> None:
    package = staging.load(key[0])
    make, value = PLAIN[key]
    args = make(package)
    wanted = value(**copied(args))
    found = getattr(package, key[1])(**args)
    assert found.dtype == torch.bfloat16
    close(found, wanted)


@pytest.mark.parametrize("key", TO_FP8, ids=ids(TO_FP8))
def test_codes_are_values_over_the_scale(key: tuple[str, str]) -> None:
    args, value = TO_FP8[key]
    found = getattr(staging.load(key[0]), key[1])(**args, scale=scale(0.05))
    wanted = value(**args).float()
    assert found.dtype == torch.float8_e4m3fn and found.shape == wanted.shape
    # Half a step of three bits of mantissa, and of the smallest step.
    allowed = (0.05 * found.float().abs()) * 2.0**-4 + 0.05 * 2.0**-10
    assert bool(((0.05 * found.float() - wanted).abs() <= allowed * 1.01).all())


def test_codes_saturate() -> None:
    package = staging.load(EPI)
    x = torch.full((1, 16), -1e4, dtype=torch.bfloat16)
    one = torch.ones(16, dtype=torch.bfloat16)
    found = package.channel_scale_quantize_fp8_static_bf16(x, one, scale(0.5))
    assert found.float().tolist() == [[-448.0] * 16]


@pytest.mark.parametrize("key", TO_NVFP4, ids=ids(TO_NVFP4))
def test_codes_and_tiled_scales_hold_the_values(key: tuple[str, str]) -> None:
    args, value = TO_NVFP4[key]
    wanted = value(**copied(args)).float()
    packed, sf = getattr(staging.load(key[0]), key[1])(**copied(args))
    rows, columns = wanted.shape
    assert packed.shape == (rows, columns // 2)
    assert sf.numel() == -(-rows // 128) * -(-(columns // 16) // 4) * 512
    largest = wanted.reshape(rows, -1, 16).abs().amax(-1, keepdim=True)
    error = (from_nvfp4(packed, sf) - wanted).reshape(rows, -1, 16).abs()
    # Half of the widest step of E2M1 (from 4 to 6), and what rounding the scale moves.
    assert bool((error <= largest * (1 / 6 + 1 / 16) + 2.0**-9).all())
    assert float(error.mean()) < 0.15 * float(wanted.abs().mean())


def test_a_code_is_the_nearest_value_and_halves_go_to_even() -> None:
    row = [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, -0.3, 0.26, -5.1, 4.9, 6.0, 0.0, -1.0, 3.0, 2.4]
    packed, sf = staging.load(FP4G).quantize_fp4_sfa_bf16(torch.tensor([row]).bfloat16())
    found = from_nvfp4(packed, sf)[0].tolist()
    wanted = [0, 1, 1, 2, 2, 4, 4, -0.5, 0.5, -6, 4, 6, 0, -1, 3, 2]
    assert found == wanted


def test_reading_back_is_the_inverse() -> None:
    packed, sf = to_nvfp4(150, 96)
    found = staging.load(FP4G).dequantize_fp4_sfa_fp16(packed, sf)
    assert found.dtype == torch.float16
    close(found, from_nvfp4(packed, sf), 2.0**-10)


def test_a_fused_mlp_ends_in_nvfp4() -> None:
    package = staging.load(FP4G)
    args = nvfp4_operands()
    packed, sf = package.nvfp4_gemm_bias_gelu_nvfp4(**args, bias=random(N), alpha=0.5)
    wanted = gelu(nvfp4_value(**args, bias=random(N), alpha=0.5))
    assert nnf.cosine_similarity(from_nvfp4(packed, sf).flatten(), wanted.flatten(), dim=0) > 0.99

    args["b_interleaved_packed"] = args.pop("b_packed")
    packed, sf = package.nvfp4_gemm_geglu_nvfp4_fp16(**args)
    both = nvfp4_value(args["a_packed"], args["b_interleaved_packed"], args["sfa"], args["sfb"])
    wanted = gelu(both[:, 0::2]) * both[:, 1::2]
    assert nnf.cosine_similarity(from_nvfp4(packed, sf).flatten(), wanted.flatten(), dim=0) > 0.99


def test_a_gated_residual_is_kept_and_the_next_gate_is_given() -> None:
    package = staging.load(FP4O)
    x, gate, residual, style = (
        random(M, K),
        random(M, K, seed=1),
        random(M, K, seed=2),
        random(1, 192),
    )
    total = (residual.float() + x.float() * gate.float()).bfloat16()
    entry = package.gate_res_ada_rms_norm_quant_nvfp4_swizzled_bf16
    kept, packed, sf, following = entry(x, gate, residual, style)
    assert kept is residual and torch.equal(residual, total)
    assert torch.equal(following, style[:, 2 * K :].expand(M, K))
    wanted = normed(total, torch.ones(K)) * (1 + style[:, :K].float()) + style[:, K : 2 * K].float()
    assert nnf.cosine_similarity(from_nvfp4(packed, sf).flatten(), wanted.flatten(), dim=0) > 0.99


def test_a_residual_is_added_to_in_place() -> None:
    args = alpha(bias=random(N), residual=random(M, N))
    given = args["residual"]
    assert staging.load(FP8G).fp8_linear_bias_residual_bf16(**args) is given


def test_rows_are_padded_where_asked_and_on_one_architecture(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    package = staging.load(SWIGLU)
    args = gated_mlp(True) | {"input": random(10, K)}
    entry = package.bf16_fp8_swiglu_mlp_bf16
    plain = entry(**args)
    assert plain.shape == (10, N) and plain.untyped_storage().nbytes() == 10 * N * 2
    padded = entry(**args, pad_to=16)
    assert torch.equal(padded, plain) and padded.untyped_storage().nbytes() == 16 * N * 2
    monkeypatch.setattr(package, "ARCH", "11.0")
    assert entry(**args).untyped_storage().nbytes() == 64 * N * 2


def test_int8_is_symmetric_by_row() -> None:
    weight = random(N, K)
    found, scales = staging.load(W).quantize_w8_weight_bf16(weight)
    assert int(found.abs().amax()) == 127
    error = (found.float() * scales[:, None] - weight.float()).abs()
    assert bool((error <= 0.5001 * scales[:, None]).all())


def test_a_packed_weight_is_padded() -> None:
    found = staging.load(FP4G).pack_nvfp4_weight_bf16(random(33, 80), random(33))
    assert found.packed.shape == (64, 48) and found.bias.shape == (64,)
    assert found.shape == (33, 80)
    assert float(from_nvfp4(found.packed, found.sfb)[33:].abs().max()) == 0


# ---------------------------------------------------------------- tracing


@pytest.mark.parametrize(
    "key",
    [
        (SWIGLU, "bf16_fp8_geglu_mlp_bf16"),
        (FFN8, "bf16_fp8_linear_bias_bf16"),
        (FP8G, "fp8_linear_bias_residual_bf16"),
        (FP4G, "fp4_w4a16_linear_bf16"),
        (W, "w4a16_swiglu_ffn_bf16"),
        (MOE, "grouped_w4a16_gemv_bf16"),
        (FUSED, "rms_norm_gated_silu_bf16"),
        (EPI, "bf16_linear_bias_bf16"),
    ],
    ids="{0[0]}.{0[1]}".format,
)
def test_a_call_is_traced_whole(key: tuple[str, str]) -> None:
    package = staging.load(key[0])
    args = PLAIN[key][0](package)
    entry = getattr(package, key[1])
    wanted = entry(**copied(args))
    traced = torch.compile(lambda given: entry(**given), fullgraph=True, backend="aot_eager")
    assert torch.equal(traced(copied(args)), wanted)


def test_every_op_mutates_its_outputs_and_returns_nothing() -> None:
    for name in staging.names():
        namespace = staging.load(name).__name__
        schemas = [
            one for one in torch._C._jit_get_all_schemas() if one.name.startswith(f"{namespace}::")
        ]
        assert schemas, name
        for schema in schemas:
            written = [a for a in schema.arguments if a.alias_info and a.alias_info.is_write]
            assert written and not schema.returns, str(schema)


# ---------------------------------------------------------------- wrong calls


def wrongly(value: Any) -> dict[str, Any]:
    """Every way in which one argument of a right call can break the ABI."""
    if not isinstance(value, Tensor):
        return {}
    wrong: dict[str, Any] = {
        "dtype": value.double(),
        "layout": value.unsqueeze(-1).repeat(*[1] * value.dim(), 2)[..., 0],
    }
    if value.dim() >= 2:
        wrong["size"] = torch.cat((value, value), dim=-1)
    if value.numel() > 1:
        wrong["axes"] = value.reshape(1, 1, *value.shape)
        raw = torch.zeros(value.numel() * value.element_size() + 32, dtype=torch.uint8)
        odd = raw[value.element_size() :][: value.numel() * value.element_size()]
        wrong["alignment"] = odd.view(value.dtype).view(value.shape).copy_(value)
    else:
        wrong["numbers"] = torch.cat((value, value))
        wrong["zero"] = value * 0
    return wrong


FREE = {
    # Any shape is taken.
    ("axes", "input", "channel_scale_quantize_fp8_static_bf16"),
    ("axes", "x", "quantize_fp8_static_bf16"),
    # The other argument's size, or the result's, follows this one's.
    ("size", "w", "bf16_linear_bf16"),
    ("size", "x", "quantize_fp8_static_bf16"),
    ("size", "merged", "gate_geglu_merged_quant_fp8_static_bf16"),
    ("size", "merged", "gelu_mul_nvfp4_bf16"),
    ("size", "x", "quantize_fp4_sfa_bf16"),
    ("size", "x", "quantize_fp4_sfa_fp16"),
    ("size", "weight", "quantize_w4_weight_bf16"),
    ("size", "weights", "quantize_weights_nvfp4_bf16"),
    # Scales have as many bytes as they have, in whatever shape.
    *(
        ("axes", name, entry)
        for name in ("sfa", "sfb")
        for package, entry in PLAIN
        if package == FP4G
    ),
    *(
        ("axes", name, f"w4a16_{act}_ffn_bf16")
        for name in ("gate_up_sfb", "down_sfb")
        for act in ("swiglu", "geglu")
    ),
    *(("axes", name, "grouped_w4a16_gemv_bf16") for name in ("weight_stack", "sfb_stack")),
}


def refused(entry: Callable[..., Any], args: Args, what: str) -> str:
    """What a wrong call is told."""
    try:
        entry(**args)
    except RuntimeError as error:
        return str(error)
    pytest.fail(f"took a wrong {what}")


@pytest.mark.parametrize("key", [*PLAIN, *TO_FP8, *TO_NVFP4], ids="{0[0]}.{0[1]}".format)
def test_each_wrong_argument_is_told_by_name(key: tuple[str, str]) -> None:
    package = staging.load(key[0])
    entry = getattr(package, key[1])
    if key in PLAIN:
        args = PLAIN[key][0](package)
    else:
        args = dict((TO_FP8 | TO_NVFP4)[key][0])
        args |= {"scale": scale(0.05)} if key in TO_FP8 else {}
    tried = 0
    for name, value in args.items():
        for kind, wrong in wrongly(value).items():
            if (kind, name, key[1]) in FREE or (kind == "layout" and wrong.is_contiguous()):
                continue
            told = refused(entry, copied(args) | {name: wrong}, f"{kind} of {name}")
            if kind not in ("size", "axes"):  # a size that two share may be told at the other
                assert re.search(rf"\b{name}\b", told) or kind == "device", (name, kind, told)
            tried += 1
        with pytest.raises((RuntimeError, TypeError), match=name):
            entry(**(args | {name: "no such thing"}))
    assert tried >= 3 * sum(isinstance(one, Tensor) for one in args.values())


@pytest.mark.parametrize("key", [*PLAIN, *TO_FP8, *TO_NVFP4], ids="{0[0]}.{0[1]}".format)
def test_an_output_of_the_wrong_form_is_told_by_name(key: tuple[str, str]) -> None:
    package = staging.load(key[0])
    entry = getattr(package, key[1])
    names = ("out", "packed", "sfa", "input_fp8", "gate_up_bf16", "hidden_bf16", "hidden_fp8")
    outs = [one for one in inspect.signature(entry).parameters if one in names]
    if key in PLAIN:
        args = PLAIN[key][0](package)
    else:
        args = dict((TO_FP8 | TO_NVFP4)[key][0])
        args |= {"scale": scale(0.05)} if key in TO_FP8 else {}
    for name in outs:
        if name in args:
            continue
        with pytest.raises(RuntimeError, match=rf"{name}: int64"):
            entry(**copied(args), **{name: torch.zeros(M, N, dtype=torch.int64)})


@pytest.mark.parametrize(
    ("package", "entry", "played"),
    [
        (FP8G, "fp8_linear_bias_bf16", "12.0"),
        (FP8G, "fp8_linear_bf16", "9.0"),
        (FP4G, "fp4_w4a4_gemv_warpsplit_bf16", "11.0"),
        (FP4G, "nvfp4_gemm_bias_bf16", "12.0"),
        (W, "w8a16_linear_bf16", "9.0"),
        (MOE, "grouped_w4a4_gemv_from_bf16", "11.0"),
    ],
)
def test_another_architecture_is_refused(
    package: str, entry: str, played: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = staging.load(package)
    args = PLAIN[package, entry][0](module)
    monkeypatch.setattr(module, "ARCH", played)
    with pytest.raises(RuntimeError, match=rf"{entry}: device: sm {re.escape(played)}; runs on"):
        getattr(module, entry)(**args)


TABLES: dict[tuple[str, str], Any] = {**PLAIN, **TO_FP8, **TO_NVFP4}
BOUND_TO_ONE = [
    key
    for key in TABLES
    if key[0] not in (SWIGLU, FFN8, EPI) and key[1] != "rms_norm_gated_silu_bf16"
]


@pytest.mark.parametrize("key", BOUND_TO_ONE, ids="{0[0]}.{0[1]}".format)
def test_an_architecture_that_no_section_names_is_refused(
    key: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = staging.load(key[0])
    args = PLAIN[key][0](module) if key in PLAIN else dict(TABLES[key][0])
    args |= {"scale": scale(0.05)} if key in TO_FP8 else {}
    monkeypatch.setattr(module, "ARCH", "9.0")
    with pytest.raises(RuntimeError, match="device: sm 9.0; runs on"):
        getattr(module, key[1])(**copied(args))


@pytest.mark.parametrize(
    ("package", "entry", "change", "told"),
    [
        (SWIGLU, "fp8_gemm_bf16", {"input": codes(M, 24), "weight": codes(N, 24)}, "input: 24"),
        (SWIGLU, "fp8_gemm_bf16", {"weight": codes(120, K)}, "weight: 120"),
        (SWIGLU, "bf16_fp8_swiglu_mlp_bf16", {"pad_to": 3}, "pad_to: 3 rows for 5"),
        (FFN8, "bf16_fp8_linear_bias_bf16", {"pad_to": 3}, "pad_to: 3 rows for 5"),
        (FP8G, "fp8_linear_bf16", {"alpha": scale(0.1)}, "alpha: not a number on the host"),
        (FP8G, "fp8_linear_bf16", {"variant": 4}, "variant: 4"),
        (FP4G, "fp4_w4a4_gemv_warpsplit_bf16", nvfp4_operands(), "a_packed: 5 rows"),
        (FP4G, "fp4_w4a16_linear_bf16", {"alpha": float("nan")}, "alpha: nan"),
        (W, "w8a16_linear_bf16", {"variant": -1}, "variant: -1"),
        (W, "w8a16_swiglu_ffn_bf16", {"bias": None}, "bias: an argument that the ABI"),
        (MOE, "grouped_w4a16_gemv_bf16", {"w_stride": 512}, "w_stride: 512 bytes"),
        (MOE, "grouped_w4a16_gemv_bf16", {"n": 64}, "w_stride"),
        (
            MOE,
            "grouped_w4a4_gemv_from_bf16",
            {"expert_idx": torch.tensor([0, 1, 2, 3, 0], dtype=torch.int32)},
            r"expert_idx: 0..3 is not in 0..2",
        ),
        (FUSED, "rms_norm_gated_silu_bf16", {"eps": 0.0}, "eps: 0.0"),
    ],
)
def test_a_number_out_of_range_is_told(package: str, entry: str, change: Args, told: str) -> None:
    module = staging.load(package)
    with pytest.raises(RuntimeError, match=told):
        getattr(module, entry)(**(PLAIN[package, entry][0](module) | change))


@pytest.mark.parametrize("entry", ["bf16_linear_bf16", "bf16_linear_bias_bf16"])
def test_an_output_may_not_lie_over_an_input(entry: str) -> None:
    module = staging.load(EPI)
    args = PLAIN[EPI, entry][0](module) | {"w": random(K, K), "bias": random(K)}
    args = {
        name: args[name]
        for name in inspect.signature(getattr(module, entry)).parameters
        if name in args
    }
    with pytest.raises(RuntimeError, match="out: shares memory with x"):
        getattr(module, entry)(**args, out=args["x"])


def test_a_tensor_on_another_device_is_told_by_name() -> None:
    package = staging.load(EPI)
    check = sys.modules[f"{package.__name__}._shared.checking"].Check("op")
    check.tensor("x", random(M, K), torch.bfloat16)
    with pytest.raises(RuntimeError, match="op: w: on meta, not cpu"):
        check.tensor("w", random(M, K).to("meta"), torch.bfloat16)


# ---------------------------------------------------------------- staging


def test_kernels_finds_them_by_local_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    from kernels import get_kernel

    monkeypatch.setenv("LOCAL_KERNELS", staging.local_kernels())
    for name in staging.names():
        assert get_kernel(f"flashrt/{name}", version=1) is staging.load(name)


def test_a_package_that_is_not_there_says_which_are() -> None:
    with pytest.raises(FileNotFoundError, match="fp8-gemm"):
        staging.staged("no-such-package")
