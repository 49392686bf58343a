"""Shipped kernel packages on a GPU: a fixed grid against the emulation, graphs, compile."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest
import torch

from frtspec.runtime import numerics
from frtspec.runtime.rungs import kernels
from frtspec.runtime.seats import swap
from tests.packages import cases
from tests.runtime.bind.support import bind, rel_l2, watch
from tests.runtime.hosts_small import tiny_decoder, tiny_seats, token_batches

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

BOUND = {"fp8": 1.2e-2, "int8": 4e-3, "int4": 4e-3}
"""||package - emulation|| / ||emulation||. FP8: codes of the hidden layer that lie next to a
rounding edge come out one step (6e-2 of a value) apart, and the library's product of 65 rows
and more keeps about 14 bits between instructions."""


@pytest.fixture(scope="module")
def kit() -> ModuleType:
    return kernels.load("local", "frt-dense", 1).module


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    with torch.no_grad():
        yield


def poison() -> None:
    """What fresh allocations will hold, so that an unwritten place shows as NaN."""
    torch.full((1 << 26,), float("nan"), device="cuda")
    torch.cuda.synchronize()


@pytest.mark.parametrize("fmt", cases.FFN)
@pytest.mark.parametrize("d,f", [(64, 128), (256, 512), (1152, 4352), (640, 2048), (2048, 6144)])
@pytest.mark.parametrize("m", [1, 2, 7, 8, 9, 16, 17, 33, 50, 64])
def test_ffn(kit: ModuleType, fmt: str, d: int, f: int, m: int) -> None:
    poison()
    activation = "silu" if m % 2 else "gelu"
    got, wanted = cases.ffn(kit, fmt, activation, m, d, f, seed=m, device="cuda")
    assert got.shape == wanted.shape and cases.rel_l2(got, wanted) <= BOUND[fmt]


@pytest.mark.parametrize("d,f", [(256, 512), (1152, 4352), (2048, 6144)])
@pytest.mark.parametrize("m", [65, 100, 256, 729, 2048])
def test_ffn_of_many_rows(kit: ModuleType, d: int, f: int, m: int) -> None:
    poison()
    got, wanted = cases.ffn(kit, "fp8", "silu", m, d, f, seed=m, device="cuda")
    assert cases.rel_l2(got, wanted) <= BOUND["fp8"]


@pytest.mark.parametrize("fmt", cases.FFN)
@pytest.mark.parametrize("m", [1, 4, 16, 64])
@pytest.mark.parametrize("k,n", [(64, 1), (128, 77), (1024, 4096), (4096, 6144), (768, 50257)])
def test_linear(kit: ModuleType, fmt: str, m: int, k: int, n: int) -> None:
    poison()
    got, wanted = cases.linear(kit, fmt, m, k, n, bias=n % 2 == 1, seed=n, device="cuda")
    assert cases.rel_l2(got, wanted) <= 4e-3


@pytest.mark.parametrize("m", [1, 3, 80])
def test_zero_scales_and_nans(kit: ModuleType, m: int) -> None:
    got, _ = cases.ffn(kit, "fp8", "silu", m, 256, 512, device="cuda", scale=0.0, zero_rows=True)
    assert torch.equal(got, torch.zeros_like(got))
    x = torch.ones(m, 64, dtype=torch.bfloat16, device="cuda")
    x[-1, 5] = float("nan")
    one = torch.ones(1, device="cuda")
    got = kit.fp8_linear(x, numerics.to_fp8(torch.ones(16, 64, device="cuda"), one), one, one)
    assert torch.isnan(got[-1]).all() and torch.isfinite(got[:-1]).all()


@pytest.mark.parametrize("scale", [1e-3, 0.7, 30.0])
def test_codes_are_those_of_the_emulation(kit: ModuleType, scale: float) -> None:
    """Rounding, saturation and the exactly rounded quotient, seen through a product with one."""
    x = (torch.randn(64, 4096, device="cuda") * scale * 100).bfloat16()
    s = torch.tensor([scale], device="cuda")
    wanted = numerics.to_fp8(x, s).float()
    eye = torch.eye(4096, device="cuda").to(torch.float8_e4m3fn)
    one = torch.ones(1, device="cuda")
    got = kit.fp8_linear(x, eye, s, one).float()
    assert torch.equal(got, (wanted * s).bfloat16().float())


@pytest.mark.parametrize("fmt", cases.FFN)
@pytest.mark.parametrize("m", [1, 16, 64])
def test_captured_replays_equal_eager(kit: ModuleType, fmt: str, m: int) -> None:
    d, f = 512, 1024
    x = torch.empty(m, d, dtype=torch.bfloat16, device="cuda")
    w = [numerics.quantize_fp8, numerics.quantize_int8, lambda t: numerics.quantize_int4(t, 64)]
    make = w[cases.FFN.index(fmt)]
    up = make(cases.randn(2 * f, d, seed=1, device="cuda") * d**-0.5)
    down = make(cases.randn(d, f, seed=2, device="cuda") * f**-0.5)
    s = torch.full((1,), 0.01, device="cuda")

    def call() -> torch.Tensor:
        if fmt == "fp8":
            return kit.fp8_swiglu(x, up.data, down.data, s, up.scale, s, down.scale)
        entry = kit.w8a16_swiglu if fmt == "int8" else kit.w4a16_swiglu
        return entry(x, up.data, up.scale, down.data, down.scale)

    x.normal_()
    call()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = call()
    for _ in range(100):
        x.normal_()
        graph.replay()
        assert torch.equal(captured, call())


def test_compiles_as_one_graph(kit: ModuleType) -> None:
    torch._dynamo.reset()
    up = numerics.quantize_int8(cases.randn(512, 256, seed=1, device="cuda"))

    def block(x: torch.Tensor) -> torch.Tensor:
        return kit.w8a16_linear(x * 2, up.data, up.scale) + 1

    x = cases.randn(4, 256, seed=2, device="cuda").bfloat16()
    assert torch.equal(torch.compile(block, fullgraph=True)(x), block(x))


def test_seats_bind_to_the_package() -> None:
    """Through the loader and the ladder: probed against the emulation, then run in a host."""
    model = tiny_decoder(hidden_size=256, intermediate_size=512).to("cuda", torch.bfloat16)
    batches = [batch.cuda() for batch in token_batches(length=16)]
    ids = batches[0]
    untouched = model(ids)
    seats = [seat for seat in tiny_seats(model) if seat.structure.name == "decoder_ffn"]
    seen = watch(model, seats, batches=batches, scheme=cases.SCHEME)
    bound = bind(model, seats=seats, rungs=("local",), seen=seen, scheme=cases.SCHEME)
    assert bound and all(seat.rung.package == "frt-dense" for seat in bound)
    attachment = swap.activate(model, bound)
    assert 0 < rel_l2(model(ids), untouched) < 0.15
    assert all(ledger.clean for ledger in attachment.ledger().values())
    attachment.detach()
    assert torch.equal(model(ids), untouched)


@pytest.mark.parametrize("m", [1, 5, 50, 64, 65, 256, 729])
@pytest.mark.parametrize("d,f", [(256, 512), (1152, 4304)])
def test_plain_ffn(kit: ModuleType, m: int, d: int, f: int) -> None:
    poison()
    got, wanted = cases.plain_ffn(kit, m, d, f, device="cuda")
    assert cases.rel_l2(got, wanted) <= BOUND["fp8"]
