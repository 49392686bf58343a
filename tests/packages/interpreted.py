"""Cases that Triton's interpreter runs; ``test_interpreted`` starts them in a process of its own,
since the interpreter has to be chosen before Triton is imported.

Bounds. The interpreter adds in float32 as the emulation does, in another order, so results are
the emulation's but where a sum lies next to a rounding edge: one bfloat16 step in few places,
and in FP8 a code of the hidden layer in few. The matrix units' own summing shows on a GPU only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kernels import get_local_kernel

from frtspec.runtime import numerics
from frtspec.runtime.seats import swap
from tests.packages import cases, staging
from tests.runtime.bind.support import bind, rel_l2, watch
from tests.runtime.hosts_small import tiny_decoder, tiny_seats, token_batches

assert os.environ.get("TRITON_INTERPRET") == "1"

FEW = settings(
    max_examples=int(os.environ.get("FRT_INTERPRETED_EXAMPLES", "3")),
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
BOUND = {"fp8": 6e-3, "int8": 2e-3, "int4": 2e-3}
"""Largest ||package - emulation|| / ||emulation||: a bfloat16 step is 4e-3 of a value, an FP8
code 6e-2 of one of some hundred summands."""


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return staging.on_cpu("frt-dense", tmp_path_factory.mktemp("kit"))


@pytest.fixture(scope="session")
def kit(folder: Path) -> ModuleType:
    return get_local_kernel(folder)


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.no_grad():
        yield


rows = st.one_of(st.just(1), st.integers(2, 64))
sixteens = st.integers(1, 16).map(lambda n: 16 * n)
groups = st.integers(1, 4).map(lambda n: 64 * n)


@FEW
@given(m=rows, d=sixteens, f=sixteens, activation=st.sampled_from(["silu", "gelu"]))
@pytest.mark.parametrize("fmt", ["fp8", "int8"])
def test_ffn(kit: ModuleType, fmt: str, m: int, d: int, f: int, activation: str) -> None:
    got, wanted = cases.ffn(kit, fmt, activation, m, d, f, seed=m + d)
    assert got.shape == wanted.shape and got.dtype == torch.bfloat16
    assert cases.rel_l2(got, wanted) <= BOUND[fmt]


@FEW
@given(m=rows, d=groups, f=groups, activation=st.sampled_from(["silu", "gelu"]))
def test_ffn_int4(kit: ModuleType, m: int, d: int, f: int, activation: str) -> None:
    got, wanted = cases.ffn(kit, "int4", activation, m, d, f, seed=m + d)
    assert cases.rel_l2(got, wanted) <= BOUND["int4"]


@FEW
@given(m=rows, d=sixteens, f=sixteens)
def test_plain_ffn(kit: ModuleType, m: int, d: int, f: int) -> None:
    got, wanted = cases.plain_ffn(kit, m, d, f)
    assert cases.rel_l2(got, wanted) <= BOUND["fp8"]


@FEW
@given(m=rows, k=groups, n=st.integers(1, 256), bias=st.booleans())
@pytest.mark.parametrize("fmt", cases.FFN)
def test_linear(kit: ModuleType, fmt: str, m: int, k: int, n: int, bias: bool) -> None:
    """Any number of columns."""
    got, wanted = cases.linear(kit, fmt, m, k, n, bias=bias, seed=m + n)
    assert got.shape == (m, n)
    assert cases.rel_l2(got, wanted) <= BOUND[fmt]


@pytest.mark.parametrize("fmt", cases.FFN)
@pytest.mark.parametrize("m", [1, 3])
def test_parts_of_k_are_all_summed(kit: ModuleType, fmt: str, m: int) -> None:
    """K long enough for every part of a product that splits it."""
    got, wanted = cases.linear(kit, fmt, m, 1024, 24, bias=True, seed=m)
    assert cases.rel_l2(got, wanted) <= BOUND[fmt]


@pytest.mark.parametrize("fmt", cases.FFN)
@pytest.mark.parametrize("m", [1, 5])
def test_zero_rows_and_weights(kit: ModuleType, fmt: str, m: int) -> None:
    got, wanted = cases.ffn(kit, fmt, "silu", m, 64, 128, zero_rows=True)
    assert torch.equal(got[::2], torch.zeros_like(got[::2]))
    assert not torch.isnan(got).any() and cases.rel_l2(got, wanted) <= BOUND[fmt]


@pytest.mark.parametrize("m", [1, 3])
def test_a_zero_scale_gives_zeros(kit: ModuleType, m: int) -> None:
    got, wanted = cases.ffn(kit, "fp8", "silu", m, 64, 64, scale=0.0, zero_rows=True)
    assert torch.equal(got, torch.zeros_like(got)) and torch.equal(got, wanted)


@pytest.mark.parametrize("scale", [0.0, 1e-30, 0.013, 1.0, 1e30])
def test_codes_are_those_of_the_emulation(kit: ModuleType, scale: float) -> None:
    """To the bit: ties, codes below 2**-6, saturation, infinities, NaN."""
    x = cases.randn(2, 512, seed=3) * torch.logspace(-4, 4, 512)
    x[0, :6] = torch.tensor([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 3e38])
    x[1] = (x[1] * 64).round() / 64
    x, s = x.bfloat16(), torch.tensor([scale])
    found, wanted = kit._ops.quantize(x, s), numerics.to_fp8(x, s)
    nan = torch.isnan(wanted.float())
    assert torch.equal(torch.isnan(found.float()), nan)
    assert torch.equal(found.float()[~nan], wanted.float()[~nan])


@pytest.mark.parametrize("m", [1, 3])
@pytest.mark.parametrize("scale", [1e-30, 1e-3, 1e30])
def test_scales_that_do_not_fit(kit: ModuleType, m: int, scale: float) -> None:
    """Everything saturates, or everything becomes zero; nothing becomes NaN."""
    got, wanted = cases.ffn(kit, "fp8", "silu", m, 64, 64, scale=scale)
    assert not torch.isnan(got).any()
    torch.testing.assert_close(got.float(), wanted.float(), rtol=2e-2, atol=1e-3)


@pytest.mark.parametrize("fmt", cases.FFN)
def test_no_rows(kit: ModuleType, fmt: str) -> None:
    got, wanted = cases.ffn(kit, fmt, "silu", 0, 64, 128)
    assert got.shape == wanted.shape == (0, 64) and got.dtype == torch.bfloat16
    assert cases.linear(kit, fmt, 0, 64, 32, bias=False)[0].shape == (0, 32)


@pytest.mark.parametrize("fmt", ["int8", "int4"])
def test_a_nan_stays_in_its_row(kit: ModuleType, fmt: str) -> None:
    """FP8 is shown on a GPU: the interpreter reads E4M3's NaN as 480."""
    x = torch.ones(3, 64, dtype=torch.bfloat16)
    x[1, 5] = float("nan")
    w = torch.ones(8, 64)
    if fmt == "int8":
        got = kit.w8a16_linear(x, *numerics.quantize_int8(w)[:2])
    else:
        got = kit.w4a16_linear(x, *numerics.quantize_int4(w, 64)[:2])
    assert torch.isnan(got[1]).all() and torch.isfinite(got[[0, 2]]).all()


def test_strided_rows_are_taken(kit: ModuleType) -> None:
    x = cases.randn(4, 128, seed=1).bfloat16()
    w, s = torch.ones(16, 64, dtype=torch.int8), torch.ones(16, 1)
    assert torch.equal(kit.w8a16_linear(x[:, ::2], w, s), kit.w8a16_linear(x[:, ::2].clone(), w, s))


def test_what_does_not_fit_is_refused(kit: ModuleType) -> None:
    w, s = torch.ones(16, 64, dtype=torch.int8), torch.ones(16, 1)
    with pytest.raises(ValueError, match=r"contiguous \[N, 32\]"):
        kit.w8a16_linear(torch.ones(2, 32, dtype=torch.bfloat16), w, s)
    with pytest.raises(ValueError, match="bfloat16"):
        kit.w8a16_linear(torch.ones(2, 64), w, s)
    with pytest.raises(ValueError, match="up to 64 rows here, not 65"):
        kit.w8a16_linear(torch.ones(65, 64, dtype=torch.bfloat16), w, s)
    with pytest.raises(ValueError, match="multiple of 64"):
        w4 = torch.ones(16, 16, dtype=torch.uint8)
        kit.w4a16_linear(torch.ones(2, 32, dtype=torch.bfloat16), w4, torch.ones(16, 1))


def test_every_int8_and_int4_code(kit: ModuleType) -> None:
    """One row that picks the columns of a weight out, one at a time."""
    eye = torch.eye(64, dtype=torch.bfloat16)
    w = torch.arange(-128, 128, dtype=torch.int16).to(torch.int8).reshape(4, 64)
    assert torch.equal(kit.w8a16_linear(eye, w, torch.ones(4, 1)).float(), w.T.float())
    pairs = torch.arange(256, dtype=torch.uint8).reshape(8, 32)
    low, high = (pairs & 15).to(torch.int8), (pairs >> 4).to(torch.int8)
    wanted = torch.stack([low, high], -1).flatten(-2)
    wanted = torch.where(wanted > 7, wanted - 16, wanted)
    assert torch.equal(kit.w4a16_linear(eye, pairs, torch.ones(8, 1)).float(), wanted.T.float())


def test_seats_bind_to_the_package(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Through the loader and the ladder: probed against the emulation, then run in a host."""
    monkeypatch.setenv("LOCAL_KERNELS", f"frt-dense={folder}")
    model = tiny_decoder(hidden_size=64, intermediate_size=128)
    seats = [seat for seat in tiny_seats(model) if seat.structure.name == "decoder_ffn"][:1]
    batches = [ids[:, :4] for ids in token_batches(2, length=4)]
    seen = watch(model, seats, batches=batches, scheme=cases.SCHEME)
    (bound,) = bind(model, seats=seats, rungs=("local",), seen=seen, scheme=cases.SCHEME)
    assert bound.rung.package == "frt-dense" and str(folder) in bound.trail[0].reason
    untouched = model(batches[0])
    attachment = swap.activate(model, [bound])
    assert 0 < rel_l2(model(batches[0]), untouched) < 0.15
    assert all(ledger.clean for ledger in attachment.ledger().values())


def test_tuning_rows_are_whole(kit: ModuleType) -> None:
    folder = Path(kit.__file__).parent / "tuning"
    for path in folder.glob("*.json"):
        for row in json.loads(path.read_text())["rows"]:
            extra = {"columns", "bm", "exact"}
            need = {"op", "format", "rows", "bn", "bk", "split", "stages", "warps", "lines"}
            assert need <= set(row) <= need | extra, (path, row)
