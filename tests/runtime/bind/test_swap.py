"""Going in and coming out: all or none, exactly, and nothing outside the model touched."""

from __future__ import annotations

import copy
import gc
import io
import pickle
import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as nnf
from torch.optim.swa_utils import AveragedModel

from frtspec.runtime.errors import Refusal
from frtspec.runtime.seats import root, swap
from frtspec.runtime.seats.seatmodule import SeatModule
from tests.runtime import hosts_small
from tests.runtime.bind.support import attach, bind, rel_l2, run
from tests.runtime.hosts_small import seat_named, tiny_decoder, tiny_seats


def picture(model: nn.Module) -> dict[str, Any]:
    """Everything that detach must give back: objects, order, hooks, attributes, bits."""
    return {
        "modules": [(name, id(module)) for name, module in model.named_modules()],
        "children": {n: list(m._modules) for n, m in model.named_modules()},
        "attributes": {n: sorted(m.__dict__) for n, m in model.named_modules()},
        "hooks": {
            n: (len(m._forward_hooks), len(m._forward_pre_hooks)) for n, m in model.named_modules()
        },
        "tensors": {n: (id(p), p.data_ptr(), p._version) for n, p in model.named_parameters()},
        "logits": run(model).tolist(),
    }


def refused(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        call(*args, **kwargs)
    return caught.value


# ---------------------------------------------------------------- in and out


def test_detach_gives_the_host_back_exactly_and_again_does_nothing() -> None:
    model = tiny_decoder()
    model.layers[0].mlp.register_forward_hook(lambda m, a, o: None)
    before = picture(model)
    attachment = attach(model)
    assert picture(model)["logits"] != before["logits"]
    attachment.detach()
    assert picture(model) == before
    attachment.detach()
    assert picture(model) == before
    assert attachment.seats == ()


def test_attach_again_after_detach() -> None:
    model = tiny_decoder()
    first = attach(model)
    treated = run(model)
    first.detach()
    second = attach(model)
    assert torch.equal(run(model), treated)
    first.detach()
    assert torch.equal(run(model), treated)
    second.detach()
    assert torch.equal(run(model), run(tiny_decoder()))


def test_every_seat_is_in_place_while_attached() -> None:
    model = tiny_decoder()
    attachment = attach(model)
    assert attachment.seats == tuple(seat.name for seat in tiny_seats(model))
    run(model)
    ledger = attachment.ledger()
    assert all(ledger[name].calls for name in attachment.seats)
    attachment.detach()
    run(model)
    assert attachment.ledger() == ledger


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("place", [0, 3, 11])
def test_whatever_is_raised_while_activating_rolls_all_of_it_back(
    error: type[BaseException], place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = tiny_decoder()
    before, bound = picture(model), bind(model)
    put, count = swap.Entry.put, []

    def failing(self: swap.Entry) -> None:
        count.append(self)
        put(self)
        if len(count) == place + 1:
            raise error

    monkeypatch.setattr(swap.Entry, "put", failing)
    with pytest.raises(error):
        swap.activate(model, bound)
    assert len(count) == place + 1
    assert picture(model) == before


def test_an_interrupt_while_the_root_is_held_rolls_back(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_decoder()
    before, bound = picture(model), bind(model)
    monkeypatch.setattr(root.Root, "install", lambda self: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        swap.activate(model, bound)
    monkeypatch.undo()
    assert picture(model) == before


def test_nothing_is_touched_when_one_place_is_gone() -> None:
    model = tiny_decoder()
    bound = bind(model)
    model.layers[1].mlp = copy.deepcopy(model.layers[1].mlp)
    before = picture(model)
    found = refused(swap.activate, model, bound)
    assert found.code == "swap.moved" and "layers.1.mlp" in found.what
    assert picture(model) == before


def test_seats_over_each_other_are_refused() -> None:
    model = tiny_decoder()
    outer = seat_named(model, "ffn[0]")
    at = "layers.0.mlp.down_proj"
    weight = hosts_small.Weight(f"{at}.weight", "out_in")
    inner = replace(
        seat_named(model, "o[0]"),
        name="down",
        path=at,
        dims={"K": 64, "N": 32},
        slots={"w": weight},
        points={"x": hosts_small.InputOf(at)},
        expects=(),
    )
    bound = bind(model, seats=[inner, outer])
    before = picture(model)
    assert refused(swap.activate, model, bound).code == "swap.overlap"
    assert refused(swap.activate, model, [bound[0], replace(bound[0])]).code == "swap.overlap"
    assert picture(model) == before


# ---------------------------------------------------------------- A/B


def test_disable_and_enable_for_a_comparison() -> None:
    model = tiny_decoder()
    untouched = run(model)
    attachment = attach(model)
    treated = run(model)
    attachment.disable()
    assert torch.equal(run(model), untouched)
    attachment.enable()
    assert torch.equal(run(model), treated)
    attachment.disable(["ffn[0]"])
    assert not isinstance(model.layers[0].mlp, SeatModule)
    assert isinstance(model.layers[1].mlp, SeatModule)
    with attachment.disabled():
        assert torch.equal(run(model), untouched)
    assert not isinstance(model.layers[0].mlp, SeatModule)
    assert isinstance(model.layers[1].mlp, SeatModule)
    found = refused(attachment.enable, ["ffn[9]"])
    assert found.code == "swap.seat" and "ffn[0]" in found.what
    attachment.detach()
    assert torch.equal(run(model), untouched)
    assert refused(attachment.enable).code == "swap.detached"


def test_a_seat_that_calls_the_host_while_disabled_counts_nothing() -> None:
    model = tiny_decoder()
    attachment = attach(model, ["ffn[0]"])
    attachment.disable()
    run(model)
    assert attachment.ledger()["ffn[0]"].calls == 0


# ---------------------------------------------------------------- several attachments


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_attachments_come_out_in_either_order(order: tuple[int, int]) -> None:
    model = tiny_decoder()
    before = picture(model)
    both = [attach(model, ["ffn[0]", "qkv[1]"]), attach(model, ["ffn[1]", "o[0]"])]
    both[order[0]].detach()
    assert refused(model.half).code == "attached.half"
    both[order[1]].detach()
    assert picture(model) == before
    model.half()


def test_an_attachment_that_nobody_holds_still_needs_the_refusals() -> None:
    model = tiny_decoder()
    attach(model, ["ffn[0]"])
    gc.collect()
    other = attach(model, ["ffn[1]"])
    other.detach()
    assert refused(model.half).code == "attached.half"
    (lost,) = root.users(model)
    swap.detach(model)
    assert not lost.seats and not root.users(model)
    model.half()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_attachment_inside_another_comes_out_in_either_order(order: tuple[int, int]) -> None:
    model = tiny_decoder()
    before = picture(model)
    at = "layers.0.mlp.down_proj"
    inner = replace(
        seat_named(model, "o[0]"),
        path=at,
        dims={"K": 64, "N": 32},
        slots={"w": hosts_small.Weight(f"{at}.weight", "out_in")},
        points={"x": hosts_small.InputOf(at)},
        expects=(),
    )
    first = attach(model, seats=[inner])
    second = attach(model, ["ffn[0]"])
    both = (first, second)
    both[order[0]].detach()
    both[order[1]].detach()
    assert picture(model) == before


def test_a_seat_that_something_else_covered_is_not_torn_out() -> None:
    model = tiny_decoder()
    attachment = attach(model, ["ffn[0]", "ffn[1]"])
    seat = model.layers[0].mlp
    model.layers[0].mlp = nn.Sequential(seat)
    found = refused(attachment.detach)
    assert found.code == "swap.replaced" and "Sequential" in found.what
    assert isinstance(model.layers[1].mlp, SeatModule)
    model.layers[0].mlp = seat
    attachment.detach()
    assert not isinstance(model.layers[0].mlp, SeatModule)


def test_two_models_of_one_class_do_not_meet() -> None:
    first, second = tiny_decoder(), tiny_decoder()
    untouched = run(second)
    a = attach(first)
    assert torch.equal(run(second), untouched)
    b = attach(second, ["ffn[1]"])
    a.detach()
    assert not torch.equal(run(second), untouched)
    b.detach()
    assert torch.equal(run(second), untouched) and torch.equal(run(first), untouched)
    assert torch.equal(run(tiny_decoder()), untouched)


def process_wide() -> dict[str, Any]:
    """Class attributes and module globals that an accelerator might be tempted to change."""
    classes = [nn.Module, nn.Linear, nn.LayerNorm, torch.Tensor]
    classes += [c for c in vars(hosts_small).values() if isinstance(c, type)]
    spaces = [nnf, torch, torch.nn.modules.module, hosts_small]
    found: dict[str, Any] = {f"{c.__module__}.{c.__qualname__}": dict(vars(c)) for c in classes}
    return found | {space.__name__: dict(vars(space)) for space in spaces}


def test_nothing_process_wide_is_patched() -> None:
    model = tiny_decoder()
    bound = bind(model)
    run(model)
    before = process_wide()
    attachment = swap.activate(model, bound)
    run(model)
    during = process_wide()
    attachment.detach()
    after = process_wide()
    for found in (during, after):
        assert found.keys() == before.keys()
        for name, members in before.items():
            changed = [
                k for k in {*members, *found[name]} if members.get(k) is not found[name].get(k)
            ]
            assert changed == [], name


# ---------------------------------------------------------------- refused at the root

MOVES: dict[str, Callable[[nn.Module], Any]] = {
    "to dtype": lambda m: m.to(torch.float16),
    "to device": lambda m: m.to("meta"),
    "to tensor": lambda m: m.to(torch.zeros(1, dtype=torch.bfloat16)),
    "to memory format": lambda m: m.to(memory_format=torch.channels_last),
    "half": lambda m: m.half(),
    "bfloat16": lambda m: m.bfloat16(),
    "double": lambda m: m.double(),
    "cuda": lambda m: m.cuda(),
    "cuda number": lambda m: m.cuda(1),
    "type": lambda m: m.type(torch.float16),
    "to_empty": lambda m: m.to_empty(device="cpu"),
    "train": lambda m: m.train(),
    "load_state_dict": lambda m: m.load_state_dict(m.state_dict()),
    "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps,
    "torch.save": lambda m: torch.save(m, io.BytesIO()),
    "average": AveragedModel,
}


@pytest.mark.parametrize("name", list(MOVES))
def test_what_would_leave_the_packs_behind_is_refused_before_anything_happens(name: str) -> None:
    model = tiny_decoder()
    attachment = attach(model)
    treated = run(model)
    before = picture(model)
    found = refused(MOVES[name], model)
    assert found.code.startswith("attached.") and "detach()" in found.fix
    assert "TinyDecoder" in found.what
    assert picture(model) == before and torch.equal(run(model), treated)
    attachment.detach()


@pytest.mark.parametrize("name", ["to dtype", "half", "type", "train", "deepcopy", "pickle"])
def test_after_detach_it_all_works_again(name: str) -> None:
    model = tiny_decoder()
    attach(model).detach()
    MOVES[name](model)


def test_calls_that_change_nothing_pass() -> None:
    model = tiny_decoder()
    attach(model)
    assert model.eval() is model and model.train(False) is model
    assert model.to("cpu") is model and model.to(torch.float32) is model
    assert model.to(device="cpu", dtype=torch.float32) is model
    assert model.float() is model and model.cpu() is model
    assert isinstance(model.layers[0].mlp, SeatModule)


def test_copying_a_part_with_seats_in_it_is_refused() -> None:
    model = tiny_decoder()
    attach(model, ["ffn[0]"])
    assert refused(copy.deepcopy, model.layers).code == "attached.copied"
    assert refused(pickle.dumps, model.layers[0].mlp).code == "attached.pickled"


def test_attributes_that_were_on_the_root_come_back() -> None:
    model = tiny_decoder()
    calls = []

    def wrapped(*args: Any, **kwargs: Any) -> nn.Module:
        calls.append(args)
        return nn.Module.to(model, *args, **kwargs)

    model.to = wrapped
    attachment = attach(model, ["ffn[0]"])
    model.to("cpu")
    assert calls == [("cpu",)]
    assert refused(model.to, torch.float16).code == "attached.to"
    attachment.detach()
    assert model.__dict__["to"] is wrapped


# ---------------------------------------------------------------- memory


def test_detach_frees_the_packs() -> None:
    model = tiny_decoder()
    bound = bind(model)
    attachment = swap.activate(model, bound)
    run(model)
    packs = [weakref.ref(buffer) for seat in bound for buffer in seat.impl.buffers()]
    attachment.detach()
    del bound
    gc.collect()
    assert all(pack() is None for pack in packs)


def test_packs_are_not_in_the_models_own_books() -> None:
    model = tiny_decoder()
    size = sum(p.numel() for p in model.parameters())
    attach(model)
    assert sum(p.numel() for p in model.parameters()) == size
    assert list(model.buffers()) == []
    assert rel_l2(run(model), run(tiny_decoder())) < 0.2
