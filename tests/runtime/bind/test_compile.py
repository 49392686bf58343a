"""Attached seats under torch.compile: one graph, right values, the host where it must be."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from frtspec.runtime.rungs.impl import BoundImpl
from tests.runtime.bind.support import attach, rel_l2, run
from tests.runtime.hosts_small import tiny_decoder, token_batches


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def compiled(model: nn.Module, **options: Any) -> Callable[..., Tensor]:
    return torch.compile(model, backend="aot_eager", fullgraph=True, **options)


@pytest.mark.parametrize("rungs", [("emulate",), ("torch",)])
def test_an_attached_host_compiles_whole_and_agrees_with_eager(rungs: tuple[str, ...]) -> None:
    model = tiny_decoder(num_hidden_layers=1)
    attach(model, rungs=rungs)
    graph = compiled(model)
    with torch.no_grad():
        for length in (7, 7, 3, 12):
            batch = token_batches(1, length=length)[0]
            assert torch.equal(graph(batch), model(batch))


def test_compiled_calls_are_not_counted_and_eager_ones_are() -> None:
    model = tiny_decoder(num_hidden_layers=1)
    attachment = attach(model)
    graph = compiled(model)
    with torch.no_grad():
        graph(token_batches(1)[0])
    assert attachment.ledger()["ffn[0]"].calls == 0
    run(model)
    assert attachment.ledger()["ffn[0]"].calls == 1


def test_detach_and_attach_are_seen_by_a_compiled_model() -> None:
    model, batch = tiny_decoder(num_hidden_layers=1), token_batches(1)[0]
    graph = compiled(model)
    with torch.no_grad():
        untouched = graph(batch)
        attachment = attach(model)
        treated = graph(batch)
        assert torch.equal(treated, model(batch)) and not torch.equal(treated, untouched)
        attachment.disable(["ffn[0]"])
        assert torch.equal(graph(batch), model(batch))
        attachment.detach()
        assert torch.equal(graph(batch), untouched)


TRACED: dict[str, Callable[[Any], Tensor]] = {
    "arguments": lambda mlp: mlp(torch.ones(4, 32), gain=3.0),
    "dtype": lambda mlp: mlp(torch.ones(4, 32, dtype=torch.float64)),
    "rows": lambda mlp: mlp(torch.ones(0, 32)),
}


@pytest.mark.parametrize("name", list(TRACED))
def test_checks_specialise_while_tracing(name: str) -> None:
    model, host = tiny_decoder(), tiny_decoder()
    attach(model, ["ffn[0]"])
    if name == "dtype":
        for each in (model.layers, host.layers):
            each.double()
    call = torch.compile(TRACED[name], backend="aot_eager", fullgraph=True)
    with torch.no_grad():
        assert torch.equal(call(model.layers[0].mlp), TRACED[name](host.layers[0].mlp))


def test_gradients_keep_the_host_in_the_graph() -> None:
    model, host = tiny_decoder(), tiny_decoder()
    attach(model, ["ffn[0]"])
    x = torch.ones(4, 32)
    out = compiled(model.layers[0].mlp)(x)
    assert out.requires_grad and torch.equal(out, host.layers[0].mlp(x))


def test_training_and_autocast_are_seen_while_tracing() -> None:
    model, host = tiny_decoder(), tiny_decoder()
    attach(model, ["ffn[0]"])
    x = torch.ones(4, 32)
    graph = compiled(model.layers[0].mlp)
    with torch.no_grad():
        assert 0 < rel_l2(graph(x), host.layers[0].mlp(x)) < 0.2
        with torch.autocast("cpu", dtype=torch.bfloat16):
            assert torch.equal(graph(x), host.layers[0].mlp(x))
        model.layers.train()
        assert torch.equal(graph(x), host.layers[0].mlp(x))


def test_rows_may_vary_without_new_graphs() -> None:
    model = tiny_decoder()
    attach(model, ["ffn[0]"])
    counts = torch._dynamo.utils.counters
    counts.clear()
    graph = compiled(model.layers[0].mlp, dynamic=True)
    with torch.no_grad():
        for length in (5, 6, 7, 8, 9, 10):
            graph(torch.ones(2, length, 32))
    assert counts["stats"]["unique_graphs"] == 1


def test_traced_siblings_multiply_with_their_own_rows() -> None:
    model = tiny_decoder(num_hidden_layers=1)
    attach(model, ["qkv[0]"], rungs=("torch",))
    attention = model.layers[0].self_attn
    widths: list[int] = []

    def count(graph: torch.fx.GraphModule, example: Any) -> Any:
        for node in graph.graph.nodes:
            if "scaled_mm" in str(node.target):
                widths.append(node.meta["example_value"].shape[-1])
        return graph.forward

    members = (attention.q_proj, attention.k_proj, attention.v_proj)
    call = torch.compile(lambda x: [member(x) for member in members], backend=count, fullgraph=True)
    x = torch.randn(4, 32) / 3
    with torch.no_grad():
        traced, eager = call(x), [member(x) for member in members]
    assert widths == [32, 16, 16]
    for ours, theirs in zip(traced, eager, strict=True):
        assert torch.equal(ours, theirs)


def test_traced_siblings_without_rows_of_their_own_compute_the_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(BoundImpl, "member", lambda self, position: self)
    model = tiny_decoder(num_hidden_layers=1)
    attach(model, ["qkv[0]"])
    attention = model.layers[0].self_attn
    members = (attention.q_proj, attention.k_proj, attention.v_proj)
    call = torch.compile(
        lambda x: [member(x) for member in members], backend="eager", fullgraph=True
    )
    x = torch.randn(4, 32) / 3
    with torch.no_grad():
        for ours, member in zip(call(x), members, strict=True):
            assert torch.equal(ours, member(x))
