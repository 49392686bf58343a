"""Number formats against torch's own casts and against first principles."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from frtspec.runtime import numerics

ANY = st.floats(width=32, allow_nan=False, allow_infinity=False)
SANE = st.floats(min_value=-(2.0**100), max_value=2.0**100, width=32)


def f32(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float32)


def e4m3_grid() -> torch.Tensor:
    """Every finite E4M3 value, from the definition: 4 exponent bits (bias 7), 3 mantissa."""
    positive = [m / 8 * 2.0**-6 for m in range(8)]
    positive += [(1 + m / 8) * 2.0 ** (e - 7) for e in range(1, 16) for m in range(8)]
    positive = [v for v in positive if v <= 448]
    return torch.tensor(sorted({s * v for v in positive for s in (-1.0, 1.0)}))


@given(st.lists(st.floats(-448, 448, width=32), min_size=1, max_size=64))
def test_fp8_rounds_to_the_nearest_value_of_the_format(values: list[float]) -> None:
    x, grid = f32(*values), e4m3_grid()
    got = numerics.fp8_round_trip(x, f32(1.0))
    distance = (x.double()[:, None] - grid.double()[None, :]).abs().amin(1)
    assert torch.equal((x.double() - got.double()).abs(), distance)


@given(st.lists(st.floats(-448, 448, width=32), min_size=1, max_size=64))
def test_fp8_equals_torchs_cast_inside_the_range(values: list[float]) -> None:
    x = f32(*values)
    got = numerics.to_fp8(x, f32(1.0))
    assert torch.equal(got.view(torch.uint8), x.to(torch.float8_e4m3fn).view(torch.uint8))


@pytest.mark.parametrize("shape", [(256,), (2, 128), (4, 8, 8)])
def test_every_code_is_dequantised_to_the_bits_of_torchs_cast(shape: tuple[int, ...]) -> None:
    codes = torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn).reshape(shape)
    for some in (codes, codes.T if codes.dim() == 2 else codes[::2], codes[:0]):
        got = numerics.dequantize(some, f32(1.0))
        assert got.shape == some.shape
        assert torch.equal(got.view(torch.int32), some.float().view(torch.int32))


def test_ties_go_to_the_even_code() -> None:
    ties = f32(17.0, 19.0, 21.0, 23.0)  # steps of 2 between 16 and 32
    assert numerics.fp8_round_trip(ties, f32(1.0)).tolist() == [16.0, 20.0, 20.0, 24.0]


@given(st.lists(ANY, min_size=1, max_size=32), ANY.filter(lambda v: v >= 0))
def test_nothing_finite_becomes_nan(values: list[float], amax: float) -> None:
    x = f32(*values)
    assert torch.isfinite(numerics.to_fp8(x, numerics.fp8_scale(amax)).float()).all()
    assert numerics.to_int8(x, numerics.int8_scale(amax)).abs().max() <= 127


@given(st.lists(SANE, min_size=1, max_size=32))
def test_own_scale_keeps_the_largest_magnitude(values: list[float]) -> None:
    x = f32(*values)
    for quantise in (numerics.quantize_fp8, numerics.quantize_int8):
        back = numerics.dequantize(*quantise(x[None], per="tensor"))[0]
        amax = x.abs().max()
        if amax / 448 >= torch.finfo(torch.float32).tiny:
            assert torch.isclose(back.abs().max(), amax, rtol=1e-5, atol=0)
        assert torch.isfinite(back).all()


@settings(max_examples=50)
@given(st.integers(0, 2**31), st.sampled_from(["tensor", "channel"]))
def test_relative_error_is_within_half_a_step(seed: int, per: str) -> None:
    w = torch.randn(6, 16, generator=torch.Generator().manual_seed(seed))
    fp8 = numerics.quantize_fp8(w, per=per)
    error = (numerics.dequantize(*fp8) - w).abs()
    assert (error <= w.abs() / 16 + fp8.scale * 2.0**-10 * 1.001).all()
    int8 = numerics.quantize_int8(w, per=per)
    assert ((numerics.dequantize(*int8) - w).abs() <= int8.scale / 2 * 1.001).all()


def test_a_zero_scale_gives_exact_zeros() -> None:
    x = f32(1.0, -2.0, 0.0, 3e38)
    for round_trip in (numerics.fp8_round_trip, numerics.int8_round_trip):
        assert torch.equal(round_trip(x, f32(0.0)), torch.zeros(4))
    for quantise in (numerics.quantize_fp8, numerics.quantize_int8):
        for per in ("tensor", "channel"):
            got = quantise(torch.zeros(3, 4), per=per)
            assert torch.equal(numerics.dequantize(*got), torch.zeros(3, 4))


def test_a_zero_row_leaves_the_others_alone() -> None:
    w = torch.randn(3, 8)
    w[1] = 0
    for quantise in (numerics.quantize_fp8, numerics.quantize_int8):
        whole = numerics.dequantize(*quantise(w, per="channel"))
        assert torch.equal(whole[1], torch.zeros(8))
        for row in (0, 2):
            alone = numerics.dequantize(*quantise(w[row : row + 1], per="channel"))
            assert torch.equal(whole[row : row + 1], alone)


def test_a_denormal_amax_stays_finite() -> None:
    x = f32(1e-42, -1e-45, 0.0)
    got = numerics.quantize_fp8(x[None], per="tensor")
    assert torch.isfinite(numerics.dequantize(*got)).all()


def test_values_past_the_scale_saturate() -> None:
    scale = numerics.fp8_scale(1.0)
    assert torch.allclose(numerics.fp8_round_trip(f32(7.0, -9.0), scale), f32(1.0, -1.0))
    assert numerics.to_int8(f32(7.0, -9.0), numerics.int8_scale(1.0)).tolist() == [127, -127]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_any_input_dtype_is_read_as_float32(dtype: torch.dtype) -> None:
    x = torch.randn(5, 8).to(dtype)
    assert torch.equal(
        numerics.fp8_round_trip(x, f32(0.01)), numerics.fp8_round_trip(x.float(), f32(0.01))
    )
    assert numerics.fp8_round_trip(x, f32(0.01)).dtype == torch.float32


def test_scales_have_the_documented_shapes() -> None:
    w = torch.randn(3, 8)
    assert numerics.fp8_scale(448.0).tolist() == [1.0]
    assert numerics.int8_scale(torch.tensor(127.0)).tolist() == [1.0]
    assert numerics.quantize_fp8(w).scale.shape == (1,)
    assert numerics.quantize_fp8(w, per="channel").scale.shape == (3, 1)
    assert numerics.quantize_int8(w).scale.shape == (3, 1)


@pytest.mark.parametrize("per", ["tensor", "channel"])
def test_scaled_mm_is_the_product_of_the_dequantised(per: str) -> None:
    x, w = torch.randn(5, 32), torch.randn(48, 32)
    w_q = numerics.quantize_fp8(w, per=per)
    x_q = numerics.quantize_fp8(x, per=per)
    try:
        got = numerics.scaled_mm(x_q.data, w_q.data, x_q.scale, w_q.scale)
    except RuntimeError as error:
        pytest.skip(f"this torch has no such product on a CPU: {error}")
    want = numerics.dequantize(*x_q) @ numerics.dequantize(*w_q).T
    assert got.dtype == torch.bfloat16
    torch.testing.assert_close(got.float(), want, rtol=2**-7, atol=1e-2)
