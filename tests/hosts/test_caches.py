"""Attached decoders fill the cache that they are handed, and take no argument in silence."""

from __future__ import annotations

import warnings

import pytest
import torch
from flashrt_gen.llama import HOST
from torch.nn import functional as nnf
from transformers import DynamicCache

from frtspec import runtime as rt
from hosts import tiny


@pytest.fixture
def attached():
    model = tiny.LLAMA.model().requires_grad_(False)
    plan = rt.build(
        HOST,
        model,
        lambda sample: model(**sample),
        observations=tiny.LLAMA.samples(2),
        scheme="fp8_static",
        rungs=("emulate",),
    )
    with plan:
        yield model, plan


def test_a_cache_grows_token_by_token_and_gives_what_the_whole_gives(attached) -> None:
    model, plan = attached
    assert any(name.startswith("qkv") for name in plan.bound)
    (sample,) = tiny.LLAMA.samples(1, seed=4)
    ids, cache = sample["input_ids"], DynamicCache(config=model.config)
    whole = model(input_ids=ids).logits
    steps = []
    for k in range(ids.shape[1]):
        given = {"input_ids": ids[:, k : k + 1], "past_key_values": cache, "use_cache": True}
        steps.append(model(**given).logits)
        assert cache.get_seq_length() == k + 1
    found = torch.cat(steps, 1)
    assert torch.cosine_similarity(found.flatten(), whole.flatten(), dim=0) > 0.9995
    assert not any(row.fallbacks for row in plan.ledger().values())


def test_an_argument_that_no_seat_knows_reaches_the_hosts_own_module(attached) -> None:
    model, plan = attached
    mlp, x = model.model.layers[0].mlp, torch.randn(1, 3, 64)
    assert torch.equal(mlp(x=x), mlp(x))
    for count, wrong in enumerate(({"renamed": x}, {"x": x, "cache": x}), start=1):
        with warnings.catch_warnings(), pytest.raises(TypeError, match="keyword|missing"):
            warnings.simplefilter("ignore", rt.FallbackWarning)
            mlp(**wrong)
        row = plan.ledger()["ffn[0]"]
        assert row.fallbacks == count and row.last_reason


def test_a_host_that_reads_a_bound_weight_itself_gets_the_hosts_own(attached) -> None:
    model, plan = attached
    projection, x = model.model.layers[0].self_attn.o_proj, torch.randn(3, 128)
    assert "o[0]" in plan.bound
    by_hand = nnf.linear(x, projection.weight)
    treated = projection(x)
    plan.detach()
    assert torch.equal(model.model.layers[0].self_attn.o_proj(x), by_hand)
    assert not torch.equal(treated, by_hand)
