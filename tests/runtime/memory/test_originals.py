"""The host's weights behind bound seats: put away, brought back bit for bit, given up."""

from __future__ import annotations

import threading
import warnings
from pathlib import Path

import jsonschema
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from frtspec import runtime as rt
from frtspec.runtime import FallbackWarning, Refusal, receipt
from frtspec.runtime.memory import originals
from frtspec.runtime.memory.store import InFile, WeightStore
from tests.runtime import hosts_small as small
from tests.runtime.test_bands_small import attached as attached_banded

BATCHES = small.token_batches(2)
WIDE = torch.randn(2, 3, 32, generator=torch.Generator().manual_seed(3)).double()
"""Of a dtype that no seat is bound for."""


def build(model, **options):
    given = {"observations": BATCHES, "scheme": "fp8_static", "rungs": ("emulate",)}
    return rt.build(small.BINDING, model, model, **given, **options)


def checkpoint(model: nn.Module, folder: Path, **changed: torch.Tensor) -> Path:
    """The model's weights as a file, under names without what stands in front."""
    held = {
        name.removeprefix("layers."): value.clone() for name, value in model.state_dict().items()
    }
    path = folder / "model.safetensors"
    save_file({**held, **changed}, path)
    return path


def marks(model: nn.Module) -> dict[str, tuple[nn.Parameter, torch.Tensor]]:
    return {name: (p, p.detach().clone()) for name, p in model.named_parameters()}


def assert_back(model: nn.Module, before) -> None:
    """The same parameter objects with the same bits, and nothing of ours on any module."""
    now = dict(model.named_parameters())
    assert list(now) == list(before)
    for name, (held, value) in before.items():
        assert now[name] is held and torch.equal(held, value) and held.dtype == value.dtype
    left = [
        n for n, m in model.named_modules() if {"forward", "_save_to_state_dict"} & {*m.__dict__}
    ]
    assert left == []


def out(model: nn.Module) -> torch.Tensor:
    with torch.no_grad():
        return model(BATCHES[0])


def away(model: nn.Module) -> list[str]:
    return [name for name, p in model.named_parameters() if p.is_meta]


@pytest.mark.parametrize("where", ["checkpoint", "resident"])
def test_what_is_put_away_comes_back(where, tmp_path) -> None:
    model = small.tiny_decoder()
    before, host = marks(model), out(model)
    plan = build(model)
    treated, dup = out(model), plan.memory.duplicated
    memory = plan.consume(checkpoint(model, tmp_path) if where == "checkpoint" else None)
    assert memory.stored == {where: dup} and memory.duplicated == 0 and memory.kept == {}
    assert memory.freed == (dup if where == "checkpoint" else 0)
    assert memory.added == sum(r.built.bytes_added for r in plan.seats if r.built)
    assert len(away(model)) == 18 and "embed_tokens.weight" not in away(model)
    assert torch.equal(out(model), treated)
    assert all(row.fallbacks == 0 for row in plan.ledger().values())
    assert plan.check() == ()
    saved = model.state_dict()
    assert all(torch.equal(saved[name], value) for name, (_, value) in before.items())
    assert receipt.verify(plan.receipt) and plan.receipt["plan"]["memory"]["stored"] == {where: dup}
    jsonschema.validate(plan.receipt, receipt.schema())
    plan.detach()
    assert_back(model, before)
    assert torch.equal(out(model), host)


def test_as_an_option_and_off_without_the_plan(tmp_path) -> None:
    model = small.tiny_decoder()
    before = marks(model)
    plan = build(model, originals="consumed", checkpoint=checkpoint(model, tmp_path))
    assert away(model) and plan.receipt["plan"]["memory"]["freed"] > 0
    assert str(tmp_path) not in str(plan.receipt)
    rt.detach(model)
    assert_back(model, before)


def test_a_fallback_brings_its_own_seat_back(tmp_path) -> None:
    model = small.tiny_decoder()
    before = marks(model)
    plan = build(model, originals="consumed", checkpoint=checkpoint(model, tmp_path))
    part = "layers.0.mlp."
    mine = before[part + "up_proj.weight"][1]
    with pytest.warns(FallbackWarning), pytest.raises(RuntimeError, match="double"):
        model.layers[0].mlp(WIDE)  # as the host itself: its weights are float32
    assert [n for n in away(model) if n.startswith(part)] == [] and away(model)
    assert torch.equal(model.layers[0].mlp.up_proj.weight, mine)
    assert plan.memory.restored == ("ffn[0]",)
    ran = plan.ledger()["ffn[0]"].calls
    out(model)
    assert plan.ledger()["ffn[0]"].fallbacks == 1 and plan.ledger()["ffn[0]"].calls == ran + 1
    plan.detach()
    assert_back(model, before)


def test_two_threads_that_fall_back_at_once_both_get_the_hosts_result(tmp_path) -> None:
    model = small.tiny_decoder()
    x = torch.randn(2, 3, 32)
    host = model.layers[0].mlp(x).detach()
    plan = build(model, originals="consumed", checkpoint=checkpoint(model, tmp_path))
    gate, results = threading.Barrier(4), []

    def call() -> None:
        gate.wait()
        results.append(model.layers[0].mlp(x).detach())  # gradients on: the host's own module

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        threads = [threading.Thread(target=call) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len(results) == 4 and all(torch.equal(result, host) for result in results)
    assert plan.memory.restored == ("ffn[0]",)
    plan.detach()


def test_switching_seats_off_brings_theirs_back() -> None:
    model = small.tiny_decoder()
    before, host = marks(model), out(model)
    plan = build(model, originals="consumed")
    with plan.attachment.disabled():
        assert torch.equal(out(model), host)
        assert_back(model, before)
    plan.detach()


def test_given_up_is_given_up() -> None:
    model = small.tiny_decoder()
    plan = build(model, originals="consumed")
    treated = out(model)
    memory = plan.finalize()
    assert memory.finalized and plan.receipt["plan"]["memory"]["finalized"]
    assert torch.equal(out(model), treated)
    for act in (plan.detach, plan.restore, model.state_dict, plan.consume):
        with pytest.raises(Refusal) as caught:
            act()
        assert caught.value.code == "memory.finalized"
    with pytest.warns(FallbackWarning), pytest.raises(Refusal, match=r"ffn\[1\] has to run"):
        model.layers[1].mlp(WIDE)
    assert plan.active and torch.equal(out(model), treated)


def test_a_checkpoint_that_changed_is_refused_until_it_is_back(tmp_path) -> None:
    model = small.tiny_decoder()
    before = marks(model)
    path = checkpoint(model, tmp_path)
    kept = path.read_bytes()
    plan = build(model, originals="consumed", checkpoint=path)
    treated = out(model)
    for damaged in (lambda: checkpoint(small.tiny_decoder(seed=1), tmp_path), path.unlink):
        damaged()
        with pytest.raises(Refusal) as caught:
            plan.detach()
        assert caught.value.code == "memory.checkpoint"
        assert plan.active and torch.equal(out(model), treated)
    path.write_bytes(kept)
    plan.detach()
    assert_back(model, before)


def test_only_a_file_that_holds_the_bits_is_read_back_from(tmp_path) -> None:
    model = small.tiny_decoder()
    other = model.layers[0].mlp.up_proj.weight.detach().clone()
    other[3, 5] += 1
    path = checkpoint(model, tmp_path, **{"0.mlp.up_proj.weight": other})
    plan = build(model, originals="consumed", checkpoint=path)
    assert plan.memory.stored["resident"] == other.nbytes
    plan.detach()


def test_a_file_of_another_dtype_serves_where_it_gives_the_bits(tmp_path) -> None:
    narrow = torch.randn(8, 8).bfloat16()
    save_file({"w": narrow, "v": torch.randn(8, 8).double()}, tmp_path / "a.safetensors")
    store = WeightStore(tmp_path)
    found = store.put("model.w", narrow.float())
    assert isinstance(found, InFile) and torch.equal(found.fetch(), narrow.float())
    assert store.put("v", torch.randn(8, 8)).where == "resident"
    assert store.put("w", narrow.float()[:4]).where == "resident"


# ---------------------------------------------------------------- what is never put away


def test_what_others_read_stays(tmp_path) -> None:
    model = small.tiny_decoder()
    path = checkpoint(model, tmp_path)
    plan = build(model)
    layers = model.layers
    model.add_module("tied", nn.Linear(32, 32, bias=False))
    model.tied.weight = layers[0].self_attn.o_proj.weight
    model.register_buffer("view", layers[1].self_attn.o_proj.weight.detach()[:4])
    before = marks(model)
    memory = plan.consume(path)
    assert memory.kept == {
        "layers.0.self_attn.o_proj.weight": "it is tied to tied.weight",
        "layers.1.self_attn.o_proj.weight": "view shares its storage",
    }
    assert not {*memory.kept} & {*away(model)} and len(away(model)) == 16
    assert memory.duplicated == 2 * 32 * 32 * 4
    plan.detach()
    assert_back(model, before)


def test_seats_whose_host_runs_other_row_counts_keep_theirs() -> None:
    model = small.tiny_decoder()
    plan = attached_banded(model)
    memory = plan.consume()
    assert away(model) == [] and len(memory.kept) == 6
    assert set(memory.kept.values()) == {"the host's module runs other row counts than 1..=4"}
    plan.detach()


def test_a_fault_on_the_way_leaves_every_weight(monkeypatch) -> None:
    model = small.tiny_decoder()
    before = marks(model)
    plan = build(model)
    treated = out(model)
    steps = [(WeightStore, "put"), (originals._Away, "put"), (originals.Originals, "_shadow")]
    points = 0
    for owner, name in steps:
        for fault in (OSError, KeyboardInterrupt, torch.OutOfMemoryError):
            for at in (1, 9, 17):
                with monkeypatch.context() as patch, pytest.raises(fault):
                    patch.setattr(owner, name, failing(getattr(owner, name), at, fault))
                    plan.consume()
                points += 1
                assert away(model) == [] and torch.equal(out(model), treated)
    print(f"{points} points of failure injected")
    plan.detach()
    assert_back(model, before)


def failing(real, at, fault):
    calls = []

    def broken(*args):
        calls.append(args)
        if len(calls) == at:
            raise fault("injected")
        return real(*args)

    return broken


# ---------------------------------------------------------------- a budget


def test_seats_past_the_budget_are_refused_with_the_number() -> None:
    whole = build(small.tiny_decoder())
    first = next(r for r in whole.seats if r.state == "bound").built.bytes_added
    limit = whole.memory.added // 2
    plan = build(small.tiny_decoder(), memory_budget=limit)
    refused = [r for r in plan.seats if r.code == "memory.budget"]
    assert refused and plan.bound and plan.memory.added <= limit
    assert all(
        "left of the budget of" in r.reason and "its packs need" in r.reason for r in refused
    )
    assert plan.receipt["plan"]["memory"]["budget"] == limit
    none = build(small.tiny_decoder(), memory_budget=first // 8)
    assert none.bound == () and none.memory.added == 0
    assert whole.memory.budget is None and len(whole.bound) == 8
    for each in (whole, plan, none):
        each.detach()


@pytest.mark.parametrize(
    ("text", "size"),
    [(0, 0), (7, 7), ("512", 512), ("2 KiB", 2048), ("1.5MiB", 3 << 19), ("1gib", 1 << 30)],
)
def test_amounts(text, size) -> None:
    from frtspec.runtime.memory.budget import bytes_of

    assert bytes_of(text) == size


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"memory_budget": "lots"}, "option.memory_budget"),
        ({"memory_budget": -1}, "option.memory_budget"),
        ({"memory_budget": True}, "option.memory_budget"),
        ({"memory_budget": "3 parsecs"}, "option.memory_budget"),
        ({"originals": "gone"}, "option.originals"),
        ({"checkpoint": "nowhere.safetensors"}, "option.checkpoint"),
    ],
)
def test_options_that_cannot_be(options, code) -> None:
    with pytest.raises(Refusal) as caught:
        build(small.tiny_decoder(), **options)
    assert caught.value.code == code and caught.value.fix


def test_a_file_that_is_no_checkpoint(tmp_path) -> None:
    (tmp_path / "x.safetensors").write_bytes(b"no tensors here")
    for path in (tmp_path / "x.safetensors", tmp_path):
        with pytest.raises(Refusal) as caught:
            WeightStore(path)
        assert caught.value.code == "option.checkpoint"
