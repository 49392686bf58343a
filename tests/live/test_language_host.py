"""A language model as a host: its samples and the distance between two runs."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from frtspec.live.language import Continuation, Host, figures

transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def host() -> Host:
    torch.manual_seed(3)
    config = transformers.LlamaConfig(
        vocab_size=61,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    return Host(transformers.LlamaForCausalLM(config).eval())


@pytest.fixture(scope="module")
def ids() -> Tensor:
    return torch.randint(61, (3, 12), generator=torch.Generator().manual_seed(5))


def test_a_continuation_sees_what_the_whole_sequence_sees(host: Host, ids: Tensor) -> None:
    whole = host.forward(ids[0]).logits[0]
    (rest,) = host.continuations(ids[:1], first=4)
    assert torch.equal(rest.ids, ids[0, 4:])
    torch.testing.assert_close(host.forward(rest).logits[0], whole[4:], rtol=1e-4, atol=1e-5)


def test_a_continuation_can_be_run_again(host: Host, ids: Tensor) -> None:
    (rest,) = host.continuations(ids[:1])
    assert isinstance(rest, Continuation)
    first, second = host.forward(rest).logits, host.forward(rest).logits
    assert torch.equal(first, second)


def test_a_continuation_never_shows_its_first_tokens(host: Host, ids: Tensor) -> None:
    samples = host.continuations(ids, first=4)
    rows: list[int] = []
    mlp = host.model.model.layers[0].mlp
    hook = mlp.register_forward_pre_hook(lambda module, args: rows.append(args[0].shape[1]))
    for sample in samples:
        host.forward(sample)
    hook.remove()
    assert rows == [8, 8, 8]


def test_generates_the_number_of_tokens_that_was_asked_for(host: Host, ids: Tensor) -> None:
    tokens = host.generate(ids[0], 5)
    greedy = host.forward(ids[0]).logits[0, -1].argmax()
    assert tokens.shape == (5,)
    assert tokens[0] == greedy


def test_figures_of_a_model_against_itself(host: Host, ids: Tensor) -> None:
    logits = list(host.logits(ids))
    found = figures(logits, logits, ids)
    assert (found.cosine, found.agreement, found.ratio) == (1.0, 1.0, 1.0)


def test_figures_on_numbers_that_can_be_checked_by_hand() -> None:
    ids = torch.tensor([[0, 1, 0]])
    reference = torch.zeros(1, 3, 2)
    reference[..., 0] = 1.0
    treated = reference.clone()
    treated[0, 1] = torch.tensor([0.0, 1.0])  # one of three positions turned by 90 degrees
    found = figures(reference, treated, ids)
    likely, unlikely = (math.log(math.exp(0) + math.exp(1)) - x for x in (1.0, 0.0))
    assert found.cosine == pytest.approx(2 / 3)
    assert found.agreement == pytest.approx(2 / 3)
    assert found.reference == pytest.approx(math.exp((unlikely + likely) / 2), rel=1e-6)
    assert found.perplexity == pytest.approx(math.exp(unlikely), rel=1e-6)


def test_figures_refuse_a_nan() -> None:
    reference = torch.ones(1, 3, 2)
    treated = reference.clone()
    treated[0, 1, 1] = math.nan
    with pytest.raises(ValueError, match="1 NaN"):
        figures(reference, treated, torch.zeros(1, 3, dtype=torch.long))
