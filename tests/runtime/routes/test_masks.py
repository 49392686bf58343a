"""Masks of one or two runs of keys are packed; more runs are refused, with how many there are."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.nn import functional as nnf

from frtspec.runtime.routed import masks
from tests.hosts.tiny import SIGLIP
from tests.runtime.routes.support import Run, attached

BLOCKED = torch.finfo(torch.float32).min


def additive(seen: str, queries: int = 16) -> Tensor:
    """``11..11``: a key that may be seen, or not."""
    row = torch.tensor([0.0 if key == "1" else BLOCKED for key in seen])
    return row.expand(1, 1, queries, len(seen)).clone()


@pytest.mark.parametrize(
    ("seen", "ranges"),
    [
        ("1111", ((0, 4),)),
        ("0110", ((1, 3),)),
        ("1001", ((0, 1), (3, 4))),
        ("0101", ((1, 2), (3, 4))),
    ],
)
def test_runs_of_keys(seen: str, ranges: tuple[tuple[int, int], ...]) -> None:
    mask = additive(seen)
    assert masks.seen(mask) == masks.Seen(ranges)
    assert masks.seen(mask == 0) == masks.Seen(ranges)


@pytest.mark.parametrize(
    ("mask", "says"),
    [
        (additive("10101"), "3 runs"),
        (additive("0000"), "every key"),
        (torch.zeros(1, 1, 4, 4) - 1, "bias"),
        (torch.ones(4, 4, dtype=torch.bool).tril(), "differs"),
    ],
)
def test_what_can_not_be_packed(mask: Tensor, says: str) -> None:
    problem = masks.seen(mask).problem
    assert problem is not None and says in problem


def test_an_answer_holds_until_the_mask_is_written() -> None:
    mask = additive("1111")
    assert masks.seen(mask) is masks.seen(mask)
    mask[..., 1:3] = BLOCKED
    assert masks.seen(mask).ranges == ((0, 1), (3, 4))


def test_packed_keys_give_what_the_mask_gives() -> None:
    q, k, v = (torch.randn(1, 2, 6, 8) for _ in range(3))
    mask = additive("110011", queries=6)
    ranges = masks.seen(mask).ranges
    packed = nnf.scaled_dot_product_attention(q, masks.packed(k, ranges), masks.packed(v, ranges))
    assert torch.allclose(packed, nnf.scaled_dot_product_attention(q, k, v, mask), atol=1e-6)


def masked(seen: str) -> tuple[torch.nn.Module, dict[str, Tensor], Run]:
    """A SigLIP encoder whose sixteen patches are masked."""
    model = SIGLIP.model()
    x = torch.randn(1, 16, 64, generator=torch.Generator().manual_seed(2))

    def run(sample: dict[str, Tensor]) -> Tensor:
        hidden = sample["x"]
        with torch.no_grad():
            for layer in model.encoder.layers:
                hidden = layer(hidden, attention_mask=sample["mask"])
        return hidden

    return model, {"x": x, "mask": additive(seen)}, run


def test_a_masked_host_runs_on_packed_keys() -> None:
    model, sample, run = masked("1111110000111111")
    host = run(sample)
    plan = attached(SIGLIP, model, [sample], run=run)
    assert len(plan.bound) == 2, plan.explain()
    rules = [ruling.told for ruling in plan.seat("attention[0]").rules]
    assert any("runs(mask) = 1" in told for told in rules), rules
    assert torch.cosine_similarity(run(sample).flatten(), host.flatten(), dim=0) > 0.999
    worse = {**sample, "mask": additive("1100110011001111")}
    with plan.attachment.disabled():
        want = run(worse)
    with pytest.warns(RuntimeWarning, match="4 runs of keys"):
        assert torch.equal(run(worse), want)
    assert plan.ledger()["attention[0]"].reasons == {"mask": 1}
    plan.detach()
    assert torch.equal(run(sample), host)


def test_a_fragmented_mask_is_refused() -> None:
    model, sample, run = masked("1100110011001111")
    plan = attached(SIGLIP, model, [sample], run=run)
    record = plan.seat("attention[0]")
    assert record.state == "refused" and record.code == "structure.requires"
    assert "runs(mask) = 3" in record.reason
