"""Every format and granularity: what becomes of zeros, tiny and huge values, ties and NaN."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from frtspec.runtime import numerics
from frtspec.runtime.numerics.four import E2M1, pack_pairs, to_e2m1, unpack_pairs

RoundTrip = Callable[[Tensor], Tensor]

ROUND_TRIPS: dict[str, RoundTrip] = {
    "fp8 per tensor": lambda x: numerics.dequantize(*numerics.quantize_fp8(x)),
    "fp8 per row": lambda x: numerics.dequantize(*numerics.quantize_fp8(x, per="row")),
    "fp8 per group": lambda x: numerics.dequantize(*numerics.quantize_fp8(x, "group", 16)),
    "fp8 per block": lambda x: numerics.dequantize(*numerics.quantize_fp8(x, "block", 2)),
    "int8 per channel": lambda x: numerics.dequantize(*numerics.quantize_int8(x)),
    "int4 per group": lambda x: numerics.dequantize_int4(*numerics.quantize_int4(x, 32)),
    "nvfp4": lambda x: numerics.dequantize_nvfp4(*numerics.quantize_nvfp4(x)),  # type: ignore[arg-type]
    "nvfp4, one level": lambda x: numerics.dequantize_nvfp4(
        *numerics.quantize_nvfp4_one_level(x)  # type: ignore[arg-type]
    ),
}
ERROR = {"fp8": 2.0**-4, "int8": 1 / 254, "int4": 1 / 14, "nvfp4": 0.18}
"""Largest error over the largest magnitude of what shares a scale."""

LEAST, LARGEST = 2.0**-149, 2.0**127
"""The smallest float32 above zero, and a magnitude that rounding up can't carry past the largest."""

VALUES = st.one_of(
    st.sampled_from([0.0, -0.0, LEAST, -LEAST, 1e-40, LARGEST, -LARGEST, 448.0, 6.0, 0.25]),
    st.floats(-LARGEST, LARGEST, width=32),
)
ROWS = st.lists(VALUES, min_size=128, max_size=128).map(
    lambda v: torch.tensor(v, dtype=torch.float32).reshape(4, 32)
)
round_trips = pytest.mark.parametrize("name", ROUND_TRIPS)


@round_trips
@settings(max_examples=30, deadline=None)
@given(x=ROWS)
def test_what_is_finite_stays_finite_and_keeps_its_sign(name: str, x: Tensor) -> None:
    back = ROUND_TRIPS[name](x)
    assert back.shape == x.shape and back.dtype == torch.float32
    assert (back.sign() * x.sign() >= 0).all()
    if name != "nvfp4, one level":  # saturates: its scales end at 448
        assert back.isfinite().all()
    else:
        assert not back.isnan().any()


@round_trips
@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 2**31), power=st.integers(-60, 60))
def test_the_error_is_within_half_a_step(name: str, seed: int, power: int) -> None:
    x = torch.randn(4, 32, generator=torch.Generator().manual_seed(seed))
    x = x * (1.0 if "one level" in name else 2.0**power)
    error = (ROUND_TRIPS[name](x) - x).abs().amax(-1)
    limit = ERROR[name.split()[0].rstrip(",")]
    wide = x.abs().amax() if "tensor" in name or "block" in name else x.abs().amax(-1)
    assert (error <= wide * limit * 1.001).all()


@round_trips
def test_zeros_are_exact_and_leave_others_alone(name: str) -> None:
    x = torch.zeros(4, 32)
    assert torch.equal(ROUND_TRIPS[name](x), x)
    x[2] = torch.linspace(-3, 3, 32)
    back = ROUND_TRIPS[name](x)
    assert torch.equal(back[[0, 1, 3]], x[[0, 1, 3]])
    assert back[2].abs().max() > 2.7


@round_trips
def test_a_nan_passes_and_stays_where_its_scale_is(name: str) -> None:
    x = torch.ones(4, 32)
    x[1, 3] = float("nan")
    back = ROUND_TRIPS[name](x)
    assert back[1, 3].isnan()
    if "tensor" not in name and name != "nvfp4":
        assert back[2:].isfinite().all()


@round_trips
def test_the_largest_magnitude_survives(name: str) -> None:
    x = torch.linspace(-1, 1, 128).reshape(4, 32)
    assert ROUND_TRIPS[name](x).abs().max() == pytest.approx(1.0, rel=0.04)


@round_trips
def test_a_stack_is_its_matrices(name: str) -> None:
    x = torch.randn(3, 4, 32, generator=torch.Generator().manual_seed(5))
    x[1] *= 50
    whole = ROUND_TRIPS[name](x)
    assert torch.equal(whole, torch.stack([ROUND_TRIPS[name](each) for each in x]))


# ---------------------------------------------------------------- four bits


@given(st.lists(st.integers(0, 15), min_size=2, max_size=64).filter(lambda v: len(v) % 2 == 0))
def test_two_codes_share_a_byte_the_first_one_low(codes: list[int]) -> None:
    data = pack_pairs(torch.tensor(codes))
    assert data.dtype == torch.uint8
    assert data.tolist() == [
        low | high << 4 for low, high in zip(codes[::2], codes[1::2], strict=True)
    ]
    assert unpack_pairs(data).tolist() == codes


def test_int4_by_hand() -> None:
    w = torch.tensor([[7.0, -7.0, 0.5, 1.5] + [0.0] * 28])
    packed = numerics.quantize_int4(w, 32)
    assert packed.data.shape == (1, 16) and packed.scale.tolist() == [[1.0]]
    assert packed.data[0, :2].tolist() == [0x97, 0x20]  # 7 | -7, then 0.5 -> 0 and 1.5 -> 2
    assert packed.data[0, 2:].count_nonzero() == 0


def e2m1_nearest(value: float) -> int:
    """The nearest code by exhaustion: ties go to the even one."""
    return min(range(8), key=lambda code: (abs(E2M1[code] - value), code % 2))


@given(st.floats(0, 8, width=32))
def test_e2m1_rounds_to_nearest_and_ties_to_even(value: float) -> None:
    assert to_e2m1(torch.tensor([value, -value])).tolist()[0] == e2m1_nearest(value)


@pytest.mark.parametrize("middle", [0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0])
def test_e2m1_at_the_middles(middle: float) -> None:
    x = torch.tensor(middle)
    down, up = torch.nextafter(x, torch.tensor(0.0)), torch.nextafter(x, torch.tensor(9.0))
    wanted = [e2m1_nearest(float(v)) for v in (down, x, up)]
    assert to_e2m1(torch.stack([down, x, up])).tolist() == wanted
    assert to_e2m1(torch.stack([-down, -x, -up])).tolist() == [8 | code for code in wanted]


def test_nvfp4_by_hand() -> None:
    """Blocks of 6 and of 0.75 under a tensor scale of 6 / 2688: 448 and 56 in E4M3, exact."""
    x = torch.cat([torch.full((16,), 6.0), torch.full((16,), -0.75)])[None]
    packed = numerics.quantize_nvfp4(x)
    assert packed.tensor_scale is not None
    assert packed.tensor_scale.item() == pytest.approx(6 / 2688)
    assert packed.scale.float().tolist() == [[448.0, 56.0]]
    assert packed.data.tolist() == [[0x77] * 8 + [0xFF] * 8]


def test_a_given_tensor_scale_is_kept() -> None:
    x = torch.randn(4, 32, generator=torch.Generator().manual_seed(1))
    given_scale = numerics.nvfp4_tensor_scale(10.0)
    packed = numerics.quantize_nvfp4(x, given_scale)
    assert packed.tensor_scale is given_scale
    back = numerics.dequantize_nvfp4(*packed)  # type: ignore[arg-type]
    assert torch.equal(back, numerics.nvfp4_round_trip(x, given_scale))


# ---------------------------------------------------------------- what does not fit


@pytest.mark.parametrize(
    "quantise",
    [
        lambda x: numerics.quantize_int4(x, 64),
        lambda x: numerics.quantize_nvfp4(x),
        lambda x: numerics.quantize_fp8(x, "group", 16),
        lambda x: numerics.quantize_fp8(x, "block", 16),
    ],
)
def test_a_remainder_is_refused_and_never_padded(quantise: Callable[[Tensor], object]) -> None:
    with pytest.raises(ValueError, match=r"an axis of 40 can't be cut into groups of \d+"):
        quantise(torch.ones(16, 40))


# ---------------------------------------------------------------- balance


@given(
    st.lists(st.floats(0, 100, width=32), min_size=2, max_size=32),
    st.floats(0, 1),
)
def test_balance_keeps_its_limits_and_the_order_of_channels(
    amax: list[float], alpha: float
) -> None:
    sizes = torch.tensor(amax)
    factors = numerics.balance(sizes, alpha=alpha, low=0.25, high=4.0)
    assert ((factors >= 0.25) & (factors <= 4.0)).all()
    ordered = factors[sizes.argsort()]
    # A lane of a vector and the rest of it round their powers apart, by a last bit.
    assert (ordered.diff() >= -(2.0**-22) * ordered[1:]).all()


def test_balance_by_hand() -> None:
    amax = torch.tensor([1.0, 4.0, 7.0])
    factors = numerics.balance(amax, alpha=0.5, low=0.25, high=4.0)
    assert torch.allclose(factors, torch.tensor([0.5, 1.0, 7**0.5 / 2]))
    assert torch.equal(numerics.balance(amax, alpha=0.0, low=0.25, high=4.0), torch.ones(3))


def test_calibrated_scales() -> None:
    amax = torch.tensor([1.0, 448.0], dtype=torch.float64)
    assert numerics.calibrated("fp8_e4m3", amax).tolist() == [1.0]
    assert numerics.calibrated("nvfp4", amax).tolist() == pytest.approx([1 / 6])
    assert numerics.calibrated("balance", amax).tolist() == [1.0, 448.0]
    assert numerics.calibrated("balance", amax).dtype == torch.float32


# ---------------------------------------------------------------- products of codes


@pytest.mark.parametrize("rows", [1, 7, 40])
def test_int8_product_is_exact(rows: int) -> None:
    generator = torch.Generator().manual_seed(rows)
    x = numerics.quantize_int8(torch.randn(rows, 64, generator=generator), "row")
    w = numerics.quantize_int8(torch.randn(24, 64, generator=generator))
    found = numerics.int8_mm(x.data, w.data, x.scale, w.scale, out_dtype=torch.float32)
    exact = (x.data.double() @ w.data.double().T) * x.scale.double() * w.scale.double().T
    assert torch.allclose(found.double(), exact, rtol=3e-7, atol=0)


@pytest.mark.parametrize("per", ["tensor", "row"])
@pytest.mark.parametrize("weight_per", ["tensor", "channel"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_fp8_product_under_every_pair_of_scales(
    per: str, weight_per: str, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(3)
    x = numerics.quantize_fp8(torch.randn(5, 32, generator=generator), per)  # type: ignore[arg-type]
    w = numerics.quantize_fp8(torch.randn(16, 32, generator=generator), weight_per)  # type: ignore[arg-type]
    found = numerics.scaled_mm(x.data, w.data, x.scale, w.scale, out_dtype=dtype)
    exact = numerics.dequantize(*x).double() @ numerics.dequantize(*w).double().T
    assert found.dtype == dtype
    assert torch.allclose(found.double(), exact, rtol=2.0**-7, atol=1e-5)
