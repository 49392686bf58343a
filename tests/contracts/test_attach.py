"""attach on hosts of transformers' and diffusers' own classes, built small, with the contract
packages in place of the Hub's: what is bound says so with its package; without the packages every
seat is refused, and says why of each rung."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from frtspec.runtime import Plan
from frtspec.runtime.rungs import kernels
from tests.contracts import calls, staging
from tests.hosts import tiny
from tests.hosts.diffusion import FLUX

DIM, HIDDEN = 512, 1024
"""The smallest that the rungs of products take."""


def _llama() -> nn.Module:
    torch.manual_seed(11)
    config = transformers.LlamaConfig(
        vocab_size=tiny.VOCAB,
        hidden_size=DIM,
        intermediate_size=HIDDEN,
        num_hidden_layers=1,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=128,
    )
    model = transformers.LlamaForCausalLM(config)
    tiny.randomise(model)
    return model.to(torch.bfloat16).eval()


def attach_llama(rungs: tuple[str, ...]) -> Plan:
    model = _llama()
    plan: Plan = importlib.import_module("flashrt_gen.llama").attach(
        model,
        lambda sample: model(**sample),
        observations=tiny.LLAMA.samples(4),
        held_out=tiny.LLAMA.samples(1, seed=9),
        scheme="fp8_static",
        rungs=rungs,
    )
    return plan


def attach_flux(rungs: tuple[str, ...]) -> Plan:
    model = FLUX.model(torch.bfloat16)
    plan: Plan = importlib.import_module("flashrt_gen.flux").attach(
        model,
        lambda sample: model(**sample),
        observations=FLUX.samples(dtype=torch.bfloat16),
        scheme="fp8_static",
        rungs=rungs,
    )
    return plan


HOSTS = {
    "llama": (attach_llama, {"qkv[0]", "o[0]", "ffn[0]"}),
    "flux": (
        attach_flux,
        {
            f"{name}[{layer}]"
            for name in ("qkv", "add_qkv", "attention", "ff", "ff_context")
            + ("single_qkv", "single_attention")
            for layer in (0, 1)
        },
    ),
}
"""A host, and the seats whose sizes and dtypes a hub rung takes."""


@pytest.fixture
def no_packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No package is named and the Hub is not asked."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.delenv("LOCAL_KERNELS", raising=False)
    kernels.forget()
    yield
    kernels.forget()


def trails(plan: Plan) -> dict[str, list[Any]]:
    return {record["name"]: record["trail"] for record in plan.receipt["plan"]["seats"]}


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.usefixtures("packages")
def test_what_is_bound_names_its_package(name: str) -> None:
    attach, wanted = HOSTS[name]
    plan = attach(("hub",))
    seats = {seat["name"]: seat for seat in plan.receipt["plan"]["seats"]}
    bound = {record.name for record in plan.seats if record.state == "bound"}
    assert bound == wanted, plan.explain()
    for seat in bound:
        (used,) = seats[seat]["kernels"]
        package = used["package"].removeprefix("flashrt/")
        assert seats[seat]["rung"] == f"hub {used['package']}@v{used['version']}"
        assert used["version"] == calls.versions()[package]
        assert used["origin"] == f"local override {staging.staged(package)}, unpinned"
        assert used["digest"] == kernels.digest_of(staging.load(package))
        (row,) = [row for row in seats[seat]["trail"] if row["verdict"] == "bound"]
        assert row["what"] == seats[seat]["rung"] and "away from the emulation" in row["reason"]
    for seat in seats.keys() - bound:
        assert seats[seat]["kernels"] == [] and seats[seat]["rung"] is None
    plan.detach()


@pytest.mark.usefixtures("packages")
def test_a_host_comes_back_from_its_packages() -> None:
    sample = tiny.LLAMA.samples(1, seed=5)[0]
    with torch.no_grad():
        before = _llama()(**sample).logits
        plan = attach_llama(("hub",))
        with_packages = plan.model(**sample).logits
        plan.detach()
        after = plan.model(**sample).logits
    assert torch.equal(before, after) and not torch.equal(before, with_packages)
    close = torch.nn.functional.cosine_similarity(
        before.double().flatten(), with_packages.double().flatten(), dim=0
    )
    assert float(close) > 0.99


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.usefixtures("no_packages")
def test_without_packages_every_refusal_is_whole(name: str) -> None:
    attach, wanted = HOSTS[name]
    with pytest.warns(UserWarning, match="NOTHING IS BOUND"):
        plan = attach(("hub",))
    assert not plan.bound, plan.explain()
    told = trails(plan)
    for seat in wanted:
        record = next(one for one in plan.seats if one.name == seat)
        assert (record.state, record.code) == ("refused", "rung.none")
        hub = [row for row in told[seat] if row["what"].startswith("hub ")]
        assert hub and all(row["verdict"] != "bound" for row in told[seat])
        offline = [row for row in hub if row["code"] == "kernel.offline"]
        assert offline, hub
        for row in offline:
            assert row["what"].split()[1].partition("@")[0] in row["reason"]
            assert "LOCAL_KERNELS=" in row["fix"]
        others = [row for row in told[seat] if not row["what"].startswith("hub ")]
        assert others and {row["code"] for row in others} == {"rung.not_asked"}


@pytest.mark.usefixtures("packages")
def test_a_seat_that_is_too_small_says_which_size() -> None:
    plan = attach_flux(("hub",))
    (row,) = [
        row
        for row in trails(plan)["o[0]"]
        if row["what"].endswith("flashrt-fp8-ffn@v1") and row["code"] == "rung.envelope"
    ]
    assert row["reason"] == "needs 512 <= K <= 16384; K = 32"


def test_a_digest_follows_the_files(tmp_path: Any) -> None:
    entry = tmp_path / "__init__.py"
    entry.write_text("one = 1\n")
    module = type(kernels)("made")
    module.__file__ = str(entry)
    first = kernels.digest_of(module)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "made.pyc").write_bytes(b"anything")
    assert kernels.digest_of(module) == first and len(first) == 64
    (tmp_path / "_part.py").write_text("two = 2\n")
    assert kernels.digest_of(module) != first
