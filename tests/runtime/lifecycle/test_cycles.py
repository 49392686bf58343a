"""Attaching over and over, and serving from threads: nothing grows, nothing is left."""

from __future__ import annotations

import gc
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as nnf
from torch.nn.modules import module as torch_module
from transformers import cache_utils, masking_utils, modeling_utils
from transformers.activations import ACT2CLS, ACT2FN
from transformers.models.llama import modeling_llama

from frtspec import runtime as rt
from frtspec.runtime.seats.ledger import IN_A_ROW, FallbackWarning
from frtspec.runtime.seats.seatmodule import SeatModule
from tests.hosts.tiny import LLAMA
from tests.runtime import hosts_small as small
from tests.runtime.bind.support import attach, run
from tests.runtime.lifecycle.support import bits, picture, same_bits

BATCHES = small.token_batches(1, length=6)


def cycle(model: nn.Module) -> None:
    plan = rt.build(
        small.BINDING,
        model,
        model,
        scheme="fp8_static",
        rungs=("torch",),
        observations=BATCHES,
        decisions=None,
    )
    assert len(plan.bound) == 4
    run(model, BATCHES[0])
    plan.detach()


def resident() -> int:
    """Bytes of this process that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def grown(work: Callable[[], None], times: int, *, warm: int = 5) -> tuple[int, int]:
    """How many objects and bytes so many times more of the work leave behind."""
    for _ in range(warm):
        work()
    gc.collect()
    objects, size = len(gc.get_objects()), resident()
    for _ in range(times):
        work()
    gc.collect()
    return len(gc.get_objects()) - objects, resident() - size


def cycles(times: int) -> tuple[int, int]:
    model = small.tiny_decoder(num_hidden_layers=1)
    before, kept = picture(model), bits(model)
    found = grown(lambda: cycle(model), times)
    assert picture(model) == before and same_bits(model, kept)
    return found


def test_attaching_over_and_over_leaves_nothing() -> None:
    objects, size = cycles(6)
    assert objects < 10, f"{objects} objects more after 6 cycles"
    assert size < 8 << 20


@pytest.mark.slow
def test_a_thousand_cycles_leave_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    objects, size = cycles(1000)
    with capsys.disabled():
        print(f"\n1000 cycles: {objects} objects and {size / 2**20:.1f} MiB more")
    assert objects < 100 and size < 32 << 20


# ---------------------------------------------------------------- threads


def together(count: int, serve: Callable[[int], None]) -> None:
    """Runs ``serve`` on so many threads; what one raises is raised here."""
    raised: list[BaseException] = []

    def guarded(place: int) -> None:
        try:
            serve(place)
        except BaseException as error:  # noqa: BLE001 - for the thread that waits
            raised.append(error)

    threads = [threading.Thread(target=guarded, args=(place,)) for place in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def soak(calls: int) -> tuple[int, int]:
    model = small.tiny_decoder(num_hidden_layers=1)
    attachment = attach(model)
    batches = small.token_batches(4, seed=11)
    alone = [run(model, batch) for batch in batches]

    def serve(place: int) -> None:
        for _ in range(calls // 4):
            assert torch.equal(run(model, batches[place]), alone[place])

    found = grown(lambda: together(4, serve), 2, warm=1)
    assert all(ledger.clean for ledger in attachment.ledger().values())
    assert attachment.ledger()["ffn[0]"].calls == 4 + 3 * 4 * (calls // 4)
    return found


@pytest.mark.parametrize("calls", [40, pytest.param(200, marks=pytest.mark.slow)])
def test_serving_from_threads_is_right_and_leaves_nothing(
    calls: int, capsys: pytest.CaptureFixture[str]
) -> None:
    objects, size = soak(calls)
    with capsys.disabled():
        print(f"\n{2 * calls} calls on 4 threads: {objects} objects, {size / 2**20:.1f} MiB more")
    assert objects < 20 and size < 8 << 20


def without_no_grad(model: nn.Module, calls: int) -> Callable[[int], None]:
    def serve(_: int) -> None:
        for _ in range(calls):
            model.layers[0].mlp(torch.ones(1, 32))

    return serve


def test_a_thread_that_falls_back_takes_the_seat_from_nobody() -> None:
    model = small.tiny_decoder()
    attachment = attach(model, ["ffn[0]"])
    run(model)
    together(1, without_no_grad(model, IN_A_ROW + 5))
    ledger = attachment.ledger()["ffn[0]"]
    assert ledger.reasons == {"grad": IN_A_ROW + 5} and not ledger.detached
    assert isinstance(model.layers[0].mlp, SeatModule)
    run(model)
    assert attachment.ledger()["ffn[0]"].calls == ledger.calls + 1


def test_where_no_other_thread_runs_the_form_the_seat_is_given_back() -> None:
    model = small.tiny_decoder()
    attachment = attach(model, ["ffn[0]"])
    together(1, lambda _: [run(model), None][1])  # a thread that is gone counts no more
    together(1, without_no_grad(model, IN_A_ROW))
    assert attachment.ledger()["ffn[0]"].detached
    assert not isinstance(model.layers[0].mlp, SeatModule)


# ---------------------------------------------------------------- nothing process-wide


def process_wide() -> dict[str, dict[str, Any]]:
    """Globals, classes and registries of torch and of the host's library."""
    spaces = [torch, nnf, torch_module, modeling_llama, modeling_utils, cache_utils, masking_utils]
    found: dict[str, dict[str, Any]] = {space.__name__: dict(vars(space)) for space in spaces}
    classes = [c for c in vars(modeling_llama).values() if isinstance(c, type)]
    for each in (nn.Module, nn.Linear, nn.LayerNorm, Tensor, *classes):
        found[f"{each.__module__}.{each.__qualname__}"] = dict(vars(each))
    registries = {
        "attention": modeling_utils.ALL_ATTENTION_FUNCTIONS,
        "masks": masking_utils.ALL_MASK_ATTENTION_FUNCTIONS,
        "activations": ACT2CLS,
    }
    found |= {name: {key: held[key] for key in held} for name, held in registries.items()}
    return found | {"ACT2FN": dict.fromkeys(ACT2FN)}


def test_nothing_process_wide_changes_with_a_real_host() -> None:
    model, other = LLAMA.model(), LLAMA.model()
    samples = LLAMA.samples(2)

    def once(host: nn.Module) -> Tensor:
        with torch.no_grad():
            return host(**samples[0]).logits

    wanted = once(other)
    states: list[dict[str, dict[str, Any]]] = [process_wide()]

    def forward(sample: dict[str, Tensor]) -> Any:
        states.append(process_wide())
        return model(**sample)

    plan = LLAMA.generated().attach(
        model,
        forward,
        observations=samples,
        scheme="fp8_static",
        rungs=("torch",),
        latency="skip",
    )
    assert plan.bound, plan.explain()
    states.append(process_wide())
    assert torch.equal(once(other), wanted) and torch.equal(once(LLAMA.model()), wanted)
    plan.detach()
    states.append(process_wide())
    assert len(states) > 6
    for state in states[1:]:
        for name, members in states[0].items():
            keys = {*members, *state[name]}
            assert [k for k in keys if members.get(k) is not state[name].get(k)] == [], name


def test_hooks_on_every_module_see_every_module() -> None:
    model, seen = small.tiny_decoder(), []
    attachment = attach(model, ["ffn[0]", "o[0]"])

    def count() -> int:
        seen.clear()
        handle = torch_module.register_module_forward_hook(lambda *_: seen.append(1))
        try:
            run(model)
        finally:
            handle.remove()
        return len(seen)

    attached = count()
    assert attachment.ledger()["ffn[0]"].reasons == {"hooks": 1}
    assert attachment.ledger()["o[0]"].clean  # it stands for a module without any inside
    attachment.detach()
    assert attached == count()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        yield
