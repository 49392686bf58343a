"""What only a GPU shows: devices, the library's FP8 product, memory that comes back."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import nn

from frtspec.runtime.calibration.statistics import collector
from frtspec.runtime.errors import Refusal
from frtspec.runtime.seats import swap
from frtspec.runtime.seats.ledger import FallbackWarning
from frtspec.runtime.spec import Stat
from tests.runtime.bind.support import attach, bind, rel_l2, watch
from tests.runtime.hosts_small import TinyDecoder, tiny_decoder, tiny_seats, token_batches

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

SIZES = {"hidden_size": 256, "intermediate_size": 512}


@pytest.fixture(autouse=True)
def inference() -> Iterator[None]:
    torch._dynamo.reset()
    with torch.no_grad():
        yield


def on_cuda(dtype: torch.dtype = torch.bfloat16) -> TinyDecoder:
    return tiny_decoder(**SIZES).to("cuda", dtype)


def ids(length: int = 16) -> torch.Tensor:
    return token_batches(1, length=length, seed=9)[0].cuda()


def put_on(model: nn.Module, rungs: Any) -> swap.Attachment:
    batches = [batch.cuda() for batch in token_batches(length=16)]
    seen = watch(model, batches=batches)
    assert seen.refusals == {}
    return swap.activate(model, bind(model, rungs=rungs, seen=seen))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
@pytest.mark.parametrize("rung", ["torch", "emulate"])
def test_attach_run_detach(dtype: torch.dtype, rung: str) -> None:
    model = on_cuda(dtype)
    untouched = model(ids())
    attachment = put_on(model, (rung,))
    assert attachment.seats == tuple(seat.name for seat in tiny_seats(model))
    assert 0 < rel_l2(model(ids()), untouched) < 0.15
    assert all(ledger.clean for ledger in attachment.ledger().values())
    attachment.detach()
    assert torch.equal(model(ids()), untouched)


@pytest.mark.parametrize("length", [1, 2, 7, 16, 33])
def test_the_torch_rung_at_any_number_of_rows(length: int) -> None:
    model = on_cuda()
    untouched = model(ids(length))
    put_on(model, ("torch",))
    assert rel_l2(model(ids(length)), untouched) < 0.15


def test_an_input_on_another_device_is_the_hosts_matter() -> None:
    model = on_cuda()
    attachment = put_on(model, ("torch",))
    with pytest.warns(FallbackWarning, match="input on cpu"), pytest.raises(RuntimeError):
        model.layers[0].mlp(torch.zeros(4, 256, dtype=torch.bfloat16))
    assert attachment.ledger()["ffn[0]"].reasons == {"device": 1}


def test_moves_that_change_nothing_pass_and_others_are_refused() -> None:
    model = on_cuda()
    put_on(model, ("torch",))
    assert model.cuda() is model and model.to("cuda") is model and model.to("cuda:0") is model
    for move in (model.cpu, model.float, lambda: model.to("cpu")):
        with pytest.raises(Refusal):
            move()


def test_detach_gives_the_memory_back() -> None:
    model = on_cuda()
    put_on(model, ("torch",)).detach()
    gc.collect()
    before = torch.cuda.memory_allocated()
    attachment = put_on(model, ("torch",))
    model(ids())
    assert torch.cuda.memory_allocated() > before
    attachment.detach()
    del attachment
    gc.collect()
    assert torch.cuda.memory_allocated() <= before


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_compiled_whole(backend: str) -> None:
    model = on_cuda()
    put_on(model, ("torch",))
    graph = torch.compile(model, backend=backend, fullgraph=True)
    assert rel_l2(graph(ids()), model(ids())) < 0.02


def test_a_captured_graph_replays_the_bound_form() -> None:
    model = on_cuda()
    put_on(model, ("torch",))
    batch = ids()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            model(batch)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = model(batch)
    graph.replay()
    assert torch.equal(out, model(batch))


@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two CUDA devices")
def test_a_host_on_the_second_device() -> None:
    model = on_cuda().to("cuda:1")
    batches = [batch.to("cuda:1") for batch in token_batches(length=16)]
    untouched = model(batches[0])
    seen = watch(model, batches=batches)
    swap.activate(model, bind(model, rungs=("torch",), seen=seen))
    assert rel_l2(model(batches[0]), untouched) < 0.15


def test_attach_helper_binds_on_the_cpu_beside_a_gpu() -> None:
    assert attach(tiny_decoder(), ["ffn[0]"], rungs=("torch",)).seats == ("ffn[0]",)


# ---------------------------------------------------------------- statistics

STATS = (
    Stat("amax"),
    Stat("amax", "channel"),
    Stat("amax", "block", size=16),
    Stat("second_moment", "channel"),
    Stat("histogram", bins=2048),
)


@pytest.mark.parametrize("stat", STATS, ids=str)
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_collectors_wait_for_nothing_and_give_what_they_give_on_a_cpu(
    stat: Stat, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(0)
    calls = [10.0**k * torch.randn(3, 50, 72, generator=generator).to(dtype) for k in (-2, 1, 0)]
    here, there = collector(stat), collector(stat)
    assert here is not None and there is not None
    on_gpu = [call.cuda() for call in calls]
    there.see(on_gpu[0])  # kernels are loaded, and may wait for that
    there.close()
    torch.cuda.set_sync_debug_mode("error")
    try:
        for call in on_gpu:
            there.see(call)
        row = there.close()
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert row is not None
    there.add(row.cpu())
    for call in calls:
        here.see(call)
    row = here.close()
    assert row is not None
    here.add(row)
    exact = stat.stat != "second_moment"
    torch.testing.assert_close(
        there.value(99.9), here.value(99.9), rtol=0 if exact else 1e-12, atol=0
    )
