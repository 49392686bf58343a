"""Seats that hold what a module gave: never stale, refreshed by the caller, taken out exactly."""

from __future__ import annotations

import copy
import dataclasses
import gc
import threading
import warnings
import weakref

import pytest
import torch
from torch import Tensor, nn

from frtspec import runtime as rt
from frtspec.runtime import Refusal, receipt
from frtspec.runtime.seats.ledger import IN_A_ROW, FallbackWarning
from frtspec.runtime.spec import Route
from tests.hosts.diffusion import WAN
from tests.runtime.cadence.support import HELD, SAMPLES, STEPS, attached, built, denoising

NAME = "cross_k[0]"


@pytest.fixture
def model() -> nn.Module:
    return WAN.model()


def seat(model: nn.Module) -> nn.Module:
    """The module at the place of ``NAME``."""
    return model.get_submodule("blocks.0.attn2.to_k")


@pytest.fixture
def prompt() -> Tensor:
    return torch.randn(1, 6, 24, generator=torch.Generator().manual_seed(3))


def test_every_observation_is_computed_once_and_right_to_the_bit(model: nn.Module) -> None:
    forward = denoising(model)
    before = [forward(sample) for sample in SAMPLES]
    modules = dict(model.named_modules())
    plan = attached(model)
    assert plan.bound == HELD, plan.explain("text")
    told = "4 seats hold a value: run plan.refresh() when the prompt changes"
    assert f"{told}\n" in plan.explain("text")
    for sample, wanted in zip(SAMPLES, before, strict=True):
        plan.refresh()
        assert torch.equal(forward(sample), wanted)
    for row in plan.ledger().values():
        steps, samples = len(STEPS), len(SAMPLES)
        assert (row.calls, row.refreshes, row.held) == (steps * samples, samples, 2 * samples)
        assert row.clean
    assert f"{told}; so far 32 of 48 calls were handed it" in plan.explain("text")

    assert receipt.verify(plan.receipt).problems == ()
    sealed = plan.receipt["plan"]
    assert sealed["options"]["prefix_cadence"] is True
    assert {s["name"] for s in sealed["seats"] if s["cadence"] == "prompt"} == set(HELD)
    plan.detach()
    assert dict(model.named_modules()) == modules
    assert torch.equal(forward(SAMPLES[0]), before[0])
    with pytest.raises(Refusal, match="nothing is held") as refused:
        plan.updates[NAME]()
    assert refused.value.code == "swap.detached"


def test_without_a_refresh_the_host_computes_and_it_is_counted(model: nn.Module) -> None:
    forward = denoising(model)
    before = [forward(sample) for sample in SAMPLES[:2]]
    plan = built(model)
    assert torch.equal(forward(SAMPLES[0]), before[0])
    with pytest.warns(FallbackWarning, match=r"another input .* plan.updates\['cross_k\[0\]'\]"):
        assert torch.equal(forward(SAMPLES[1]), before[1])
    row = plan.ledger()[NAME]
    assert (row.fallbacks, row.reasons) == (len(STEPS), {"stale": len(STEPS)})
    plan.detach()

    plan = built(model, on_guard_fail="raise")
    forward(SAMPLES[0])
    with pytest.raises(Refusal) as refused:
        forward(SAMPLES[1])
    assert (refused.value.code, refused.value.seat) == ("guard.stale", NAME)
    plan.detach()


def test_a_value_is_served_only_while_it_is_known_to_be_right(
    model: nn.Module, prompt: Tensor
) -> None:
    plan = built(model)
    module, row = seat(model), lambda: plan.ledger()[NAME]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        wanted = module(prompt)
        assert module(prompt) is wanted, "the same tensor"
        assert module(prompt.clone()) is wanted, "an equal tensor"
        assert row().held == 2
        prompt.mul_(2)
        assert torch.equal(module(prompt), module._frt.host(prompt)), "written in place"
        assert row().last_reason is not None and "written to since" in row().last_reason
        plan.refresh()
        kept = module(prompt)
        kept.zero_()
        assert torch.equal(module(prompt), module._frt.host(prompt)), "the host wrote into it"
        assert "wrote into the held value" in str(row().last_reason)
        assert (row().held, row().fallbacks) == (2, 2)
    plan.detach()


def test_inference_tensors_are_guarded_by_copies(model: nn.Module, prompt: Tensor) -> None:
    plan = built(model)
    module = seat(model)
    with torch.inference_mode():
        x = prompt.clone()
        wanted = module._frt.host(x)
        module(x).zero_()
        module(x).zero_()
        assert torch.equal(module(x), wanted)
        x.mul_(2)
        with pytest.warns(FallbackWarning, match="another input"):
            assert torch.equal(module(x), module._frt.host(x))
    plan.detach()


def test_a_forgotten_refresh_costs_no_seat(model: nn.Module, prompt: Tensor) -> None:
    plan = built(model)
    module = seat(model)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        module(prompt)
        for _ in range(IN_A_ROW + 1):
            module(prompt + 1)
        assert not plan.ledger()[NAME].detached and seat(model) is module
        plan.refresh()
        wanted = module(prompt)
        assert module(prompt) is wanted
    plan.detach()


def test_weights_that_change_end_what_is_held(model: nn.Module, prompt: Tensor) -> None:
    plan = built(model)
    module = seat(model)
    with torch.no_grad():
        module(prompt)
        module.weight.mul_(2)
        with pytest.warns(FallbackWarning, match="changed since"):
            assert torch.equal(module(prompt), module._frt.host(prompt))
    plan.detach()


# ---------------------------------------------------------------- who decides


def test_the_caller_decides_and_a_scheme_can_keep(model: nn.Module) -> None:
    plan = built(model, prefix_cadence=False)
    assert plan.bound == () and {plan.seat(name).code for name in HELD} == {"prefix_cadence"}
    assert not plan.updates
    plan.refresh()

    scheme = WAN.binding().schemes["none"]
    row = Route("cadence_static", None, {}, None, keep="as it is", version=1)
    kept = dataclasses.replace(scheme, routes=(row, *scheme.routes))
    binding = dataclasses.replace(WAN.binding(), schemes={"none": kept})
    forward = denoising(model)
    plan = rt.build(binding, model, forward, observations=SAMPLES[:1], scheme="none",
                    prefix_cadence=True, structures=("cadence_static",))  # fmt: skip
    assert plan.seat(NAME).code == "scheme" and plan.seat(NAME).reason == "as it is"
    with pytest.raises(Refusal) as refused:
        built(model, prefix_cadence="yes")
    assert refused.value.code == "option.prefix_cadence"


def test_what_is_not_shown_to_stay_is_not_held(model: nn.Module) -> None:
    plan = built(model, denoising(model, STEPS[:1]))
    found = plan.seat(NAME)
    assert found.state == "refused" and "calls >= 2" in found.reason

    def drifting(sample: dict[str, Tensor]) -> Tensor:
        moved = {**sample, "encoder_hidden_states": sample["encoder_hidden_states"] * 1.1}
        one = denoising(model, STEPS[:1])
        return one(sample) + one(moved)

    found = built(model, drifting).seat(NAME)
    assert found.code == "structure.requires" and "drift(held)" in found.reason

    bare = rules_dropped(model)
    found = rt.build(bare, model, denoising(model, STEPS[:1]), scheme="none",
                     observations=SAMPLES[:1], prefix_cadence=True,
                     structures=("cadence_static",)).seat(NAME)  # fmt: skip
    assert found.code == "update.unproven", "also where the structure has no such rule"


def rules_dropped(model: nn.Module) -> rt.HostBinding:
    def seats(host: nn.Module) -> list[rt.Seat]:
        return [
            dataclasses.replace(s, structure=dataclasses.replace(s.structure, rules=()))
            for s in WAN.binding().seats(host)
        ]

    return dataclasses.replace(WAN.binding(), seats=seats)


def test_a_reader_of_siblings_is_no_producer_of_a_held_value(model: nn.Module) -> None:
    """Its result may be what a pack left for it, which a refresh would copy as it is."""

    def seats(host: nn.Module) -> list[rt.Seat]:
        return [
            dataclasses.replace(s, path="blocks.0.attn1.to_k") if s.name == NAME else s
            for s in WAN.binding().seats(host)
            if s.name in (NAME, "cross_v[0]", "qkv[0]")
        ]

    binding = dataclasses.replace(WAN.binding(), seats=seats)
    plan = rt.build(binding, model, denoising(model), observations=SAMPLES[:1],
                    scheme="bf16_structural", prefix_cadence=True, rungs=("torch",))  # fmt: skip
    assert plan.seat(NAME).code == "update.siblings" and "qkv[0]" in plan.seat(NAME).reason
    assert plan.bound == ("qkv[0]", "cross_v[0]")
    plan.detach()


# ---------------------------------------------------------------- from outside


def test_a_caller_computes_or_writes_a_value(model: nn.Module, prompt: Tensor) -> None:
    plan = built(model)
    module, update = seat(model), plan.updates[NAME]
    assert update.cadence == "prompt"
    with torch.no_grad():
        update(prompt)
        held = module(prompt)
        assert torch.equal(held, module._frt.host(prompt))
        update(prompt * 2)
        again = module(prompt * 2)
        assert again is held and torch.equal(again, module._frt.host(prompt * 2)), "in its place"
        given = torch.full_like(held, 0.5)
        update.write(given)
        assert torch.equal(module(prompt), given) and module(prompt) is not given
    for wrong in (given.double(), given[..., :3], given.to("meta"), 3):
        with pytest.raises(Refusal) as refused:
            update.write(wrong)
        assert refused.value.code == "update.value"
    with pytest.raises(Refusal) as refused:
        update(prompt[..., :3])
    assert refused.value.code == "update.input"
    with pytest.raises(Refusal) as refused:
        plan.refresh("observation")
    assert refused.value.code == "option.cadence"
    with torch.no_grad():
        assert torch.equal(module(prompt), given), "a refused update changes nothing"
    plan.detach()


def test_a_compiled_region_reads_what_was_fixed_and_computes_else(
    model: nn.Module, prompt: Tensor
) -> None:
    plan = built(model)
    module, update = seat(model), plan.updates[NAME]
    torch.compiler.reset()
    with torch.no_grad():
        compiled = torch.compile(lambda x: module(x) + 1, backend="aot_eager", fullgraph=True)
        assert torch.equal(compiled(prompt), module._frt.host(prompt) + 1), "nothing is fixed"
        update.write(torch.full((1, 6, 24), 2.0))
        assert torch.equal(compiled(prompt), torch.full((1, 6, 24), 3.0))
        with torch.compiler.set_stance("fail_on_recompile"):
            update.write(torch.full((1, 6, 24), 4.0))
            assert torch.equal(compiled(prompt), torch.full((1, 6, 24), 5.0)), "at one address"
        update()
        assert torch.equal(compiled(prompt), module._frt.host(prompt) + 1)
    plan.detach()


# ---------------------------------------------------------------- life


def test_threads_hold_their_own(model: nn.Module) -> None:
    forward = denoising(model)
    before = [forward(sample) for sample in SAMPLES[:2]]
    plan = built(model)
    forward(SAMPLES[0])
    found: list[Tensor] = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        thread = threading.Thread(target=lambda: found.append(forward(SAMPLES[1])))
        thread.start()
        thread.join()
        assert torch.equal(found[0], before[1])
        assert torch.equal(forward(SAMPLES[0]), before[0])
    row = plan.ledger()[NAME]
    assert (row.calls, row.refreshes, row.fallbacks) == (9, 2, 0)
    plan.detach()


def test_copies_are_refused_and_values_let_go(model: nn.Module, prompt: Tensor) -> None:
    plan = built(model)
    with pytest.raises(Refusal) as refused:
        copy.deepcopy(model)
    assert refused.value.code == "attached.copied"
    assert plan.memory.added > 0
    with torch.no_grad():
        gone = weakref.ref(seat(model)(prompt))
    assert gone() is not None
    plan.toggles["cross_k"] = False
    assert seat(model) is not None and not hasattr(seat(model), "_frt_held")
    plan.toggles["cross_k"] = True
    plan.detach()
    gc.collect()
    assert gone() is None


def broken(x: Tensor) -> Tensor:
    raise RuntimeError("stop")


def test_a_module_that_fails_leaves_nothing_held(model: nn.Module, prompt: Tensor) -> None:
    plan = built(model)
    module = seat(model)
    with torch.no_grad():
        module._frt.host.forward = broken
        with pytest.raises(RuntimeError, match="stop"):
            module(prompt)
        del module._frt.host.forward
        wanted = module(prompt)
        assert module(prompt) is wanted
    plan.detach()
