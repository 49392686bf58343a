"""What only a GPU shows of held values and step tables: graphs and streams."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from frtspec.runtime import Plan
from frtspec.runtime.seats.ledger import FallbackWarning
from tests.hosts.diffusion import WAN
from tests.runtime.cadence.support import SAMPLES, built, denoising

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")

NAME = "cross_k[0]"


@pytest.fixture
def held() -> Iterator[tuple[Plan, nn.Module, Tensor]]:
    model = WAN.model().cuda()
    samples = [{name: value.cuda() for name, value in SAMPLES[0].items()}]
    plan = built(model, denoising(model), observations=samples)
    assert NAME in plan.bound, plan.explain("text")
    with torch.no_grad():
        yield plan, model.get_submodule("blocks.0.attn2.to_k"), torch.randn(1, 6, 24).cuda()
    plan.detach()


def test_a_graph_reads_what_was_fixed_at_one_address(
    held: tuple[Plan, nn.Module, Tensor],
) -> None:
    plan, module, prompt = held
    update = plan.updates[NAME]
    update(prompt)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = module(prompt) + 1
    graph.replay()
    assert torch.equal(result, module._frt.host(prompt) + 1)
    update.write(torch.full_like(result, 4.0))
    graph.replay()
    assert torch.equal(result, torch.full_like(result, 5.0))


def test_another_stream_is_not_handed_the_value(held: tuple[Plan, nn.Module, Tensor]) -> None:
    _, module, prompt = held
    module(prompt)
    with torch.cuda.stream(torch.cuda.Stream()), pytest.warns(FallbackWarning, match="stream"):
        module(prompt)
