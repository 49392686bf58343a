"""Routed seats on packages that stand for the Hub's: what serves, and what falls through."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from frtspec.runtime.rungs import kernels
from tests.contracts import staging
from tests.hosts.tiny import LLAMA, SIGLIP
from tests.runtime.routes.support import attached
from tests.runtime.routes.test_masks import masked

FA2 = "fa2-seqused-runtime"


@pytest.fixture(autouse=True)
def packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("LOCAL_KERNELS", staging.local_kernels(FA2))
    kernels.forget()
    yield
    kernels.forget()


def test_a_masked_host_runs_the_kernel_on_packed_keys() -> None:
    """The kernel is handed no mask; one that is answered by packing keys is none for it."""
    model, sample, run = masked("1111110000111111")
    host = run(sample)
    plan = attached(SIGLIP, model, [sample], run=run, rungs=("hub", "torch"))
    assert len(plan.bound) == 2, plan.explain()
    served = {plan.seat(name).form for name in plan.bound}
    assert served == {f"bf16 on hub flashrt/{FA2}@v1"}, plan.explain()
    assert torch.cosine_similarity(run(sample).flatten(), host.flatten(), dim=0) > 0.999
    plan.detach()
    assert torch.equal(run(sample), host)


def test_a_causal_host_keeps_to_torch() -> None:
    """Where the kernel's causal corner lies is not said."""
    model = LLAMA.model()
    sample = LLAMA.sample(torch.Generator().manual_seed(0))
    plan = attached(LLAMA, model, [sample], rungs=("hub", "torch"), structures=["attention_core"])
    assert plan.bound, plan.explain()
    text = plan.explain()
    assert "serves unmasked = all, and this seat has causal" in text, text
    plan.detach()
