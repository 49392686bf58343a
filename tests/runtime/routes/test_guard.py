"""A call that a routed seat is not bound for runs the host's function, counted with its reason."""

from __future__ import annotations

import copy
import pickle
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from frtspec.runtime import Plan, Refusal
from frtspec.runtime.seats.ledger import IN_A_ROW, FallbackWarning
from tests.hosts.tiny import LLAMA, QWEN3
from tests.runtime.routes.support import Run, attached, own, runner, same

Attached = tuple[nn.Module, Plan, Run, dict[str, Tensor]]


@pytest.fixture(scope="module")
def qwen3() -> Iterator[Attached]:
    model, samples = QWEN3.model(), QWEN3.samples(1)
    plan = attached(QWEN3, model, samples)
    yield model, plan, runner(model), samples[0]
    plan.detach()


@pytest.fixture
def quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        yield


def reasons(plan: Plan, run: Callable[[], Any]) -> dict[str, dict[str, int]]:
    """What each seat fell back for in one run: seat's name without its number -> reasons."""
    before = {seat: row.reasons for seat, row in plan.ledger().items()}
    run()
    found: dict[str, dict[str, int]] = {}
    for seat, row in plan.ledger().items():
        new = {why: n - before[seat].get(why, 0) for why, n in row.reasons.items()}
        found.setdefault(seat.partition("[")[0], {}).update({w: n for w, n in new.items() if n})
    return found


def host(plan: Plan, run: Callable[[], Tensor]) -> Tensor:
    with plan.attachment.disabled():
        return run()


def test_any_number_of_tokens_and_a_cache(qwen3: Attached) -> None:
    model, plan, _run, sample = qwen3
    ids = sample["input_ids"]
    with torch.no_grad():
        whole = model(input_ids=ids).logits
        first = model(input_ids=ids[:, :-1], use_cache=True)
        kept = {k: v for k, v in first.items() if k in ("cache", "past_key_values")}
        step = model(input_ids=ids[:, -1:], use_cache=True, **kept).logits
    assert torch.allclose(step[:, -1], whole[:, -1], atol=0.02)
    assert all(not row.reasons for row in plan.ledger().values())


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"temperature": 30.0}, {"attention": {"arguments": 1}, "rope": {}}),
        ({"renamed": 1}, {"attention": {"arguments": 1}, "rope": {}}),
        ({"is_causal": False}, {"attention": {"arguments": 1}, "rope": {}}),
    ],
)
def test_another_argument(
    qwen3: Attached, quiet: None, change: dict[str, Any], expected: dict[str, dict[str, int]]
) -> None:
    _model, plan, run, sample = qwen3
    found = reasons(plan, lambda: run({**sample, **change}))
    assert found == expected
    want = host(plan, lambda: run({**sample, **change}))
    assert want.isfinite().all()


def test_a_batch_of_one_row_of_positions(qwen3: Attached) -> None:
    """Calibrated on single sequences; the tables of a batch have one row for all of them."""
    _model, plan, run, sample = qwen3
    ids = torch.cat([sample["input_ids"], QWEN3.samples(1, seed=9)[0]["input_ids"]])
    found: list[Tensor] = []
    assert reasons(plan, lambda: found.append(run({"input_ids": ids}))) == {
        "attention": {},
        "rope": {},
    }
    for row in (0, 1):
        alone = run({"input_ids": ids[row : row + 1]})
        assert torch.allclose(found[0][row], alone[0], atol=1e-3)
    assert not torch.allclose(found[0][0], found[0][1], atol=0.1)


def test_a_batch_with_a_mask(qwen3: Attached, quiet: None) -> None:
    """No calibrated call had a mask: attention is the host's; the rotation has none."""
    _model, plan, run, sample = qwen3
    mask = torch.ones(2, 24, dtype=torch.long)
    mask[1, :5] = 0
    batch = {"input_ids": sample["input_ids"].repeat(2, 1), "attention_mask": mask}
    want = host(plan, lambda: run(batch))
    found: list[Tensor] = []
    fell = reasons(plan, lambda: found.append(run(batch)))
    assert fell == {"attention": {"inputs": 1}, "rope": {}}
    assert torch.allclose(found[0], want, atol=0.05)
    plan.attachment.disable([name for name in plan.bound if name.startswith("rope")])
    try:
        assert torch.equal(run(batch), want)  # what falls back is the host, bit for bit
    finally:
        plan.attachment.enable()
    last = plan.ledger()["attention[0]"].last_reason
    assert last is not None and "with seen" in last


@pytest.mark.parametrize(
    ("set_", "why"),
    [
        (lambda at: setattr(at, "scaling", 0.5), {"attention": {"arguments": 1}, "rope": {}}),
        (lambda at: setattr(at, "sliding_window", 8), {"attention": {"arguments": 1}, "rope": {}}),
        (lambda at: setattr(at, "is_causal", False), {"attention": {"mask": 1}, "rope": {}}),
        (lambda at: at.__dict__.update(training=True), {"attention": {}, "rope": {"training": 1}}),
    ],
    ids=["scaling", "sliding_window", "is_causal", "training"],
)
def test_a_module_that_changed(
    qwen3: Attached, quiet: None, set_: Callable[[nn.Module], None], why: dict[str, Any]
) -> None:
    model, plan, run, sample = qwen3
    attention = model.model.layers[0].self_attn
    before = dict(attention.__dict__)
    want_before = run(sample)
    try:
        set_(attention)
        want = host(plan, lambda: run(sample))
        found: list[Tensor] = []
        got = reasons(plan, lambda: found.append(run(sample)))
        mine = got if "training" not in why["rope"] else {"rope": got["rope"]}
        assert mine == (why if "training" not in why["rope"] else {"rope": why["rope"]})
        assert torch.allclose(found[0], want, atol=0.05)
    finally:
        for name in ("scaling", "sliding_window", "is_causal", "training"):
            attention.__dict__.pop(name, None)
            if name in before:
                attention.__dict__[name] = before[name]
    assert torch.equal(run(sample), want_before)


def test_gradients_are_the_hosts(qwen3: Attached, quiet: None) -> None:
    model, plan, _, sample = qwen3
    found = reasons(plan, lambda: model(**sample))
    assert found == {"attention": {"grad": 1}, "rope": {"grad": 1}}


def test_a_hook_on_a_norm_that_the_form_computes(qwen3: Attached, quiet: None) -> None:
    model, plan, run, sample = qwen3
    want = host(plan, lambda: run(sample))
    norm = model.model.layers[0].self_attn.q_norm
    seen: list[Tensor] = []
    handle = norm.register_forward_hook(lambda _m, _i, output: seen.append(output))
    assert reasons(plan, lambda: run(sample))["rope"] == {"hooks": 1}
    handle.remove()
    with torch.no_grad():
        assert torch.equal(seen[-1], norm(norm_input(model, plan, sample)))
    assert want.isfinite().all()


def norm_input(model: nn.Module, plan: Plan, sample: dict[str, Tensor]) -> Tensor:
    seen: list[Tensor] = []
    norm = model.model.layers[0].self_attn.q_norm
    handle = norm.register_forward_pre_hook(lambda _m, args: seen.append(args[0]))
    with plan.attachment.disabled():
        runner(model)(sample)
    handle.remove()
    return seen[0]


def test_a_changed_norm_weight(quiet: None) -> None:
    model, sample = QWEN3.model(), QWEN3.samples(1)[0]
    plan, run = attached(QWEN3, model, [sample]), runner(model)
    with torch.no_grad():
        model.model.layers[0].self_attn.q_norm.weight.mul_(2)
    assert "rope[0]" in plan.attachment.check()
    assert [drift.seat for drift in plan.check()] == ["rope[0]"]
    assert reasons(plan, lambda: run(sample))["rope"] == {"weights": 1}
    plan.detach()


def test_copying_is_refused(qwen3: Attached) -> None:
    model, _, _, _ = qwen3
    attention = model.model.layers[1].self_attn
    for module in (model, attention, attention.q_norm):
        for make in (copy.deepcopy, pickle.dumps):
            with pytest.raises(Refusal) as refusal:
                make(module)
            assert refusal.value.code in ("attached.copied", "attached.pickled")


def test_threads_share_a_seat(qwen3: Attached) -> None:
    _model, plan, run, _ = qwen3
    samples = QWEN3.samples(4, seed=3)
    want = [run(sample) for sample in samples]
    got: dict[int, list[bool]] = {}

    def work(place: int) -> None:
        got[place] = [torch.equal(run(samples[place]), want[place]) for _ in range(5)]

    before = {seat: (row.calls, row.fallbacks) for seat, row in plan.ledger().items()}
    threads = [threading.Thread(target=work, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {place: all(same_) for place, same_ in got.items()} == dict.fromkeys(range(4), True)
    for seat, row in plan.ledger().items():
        assert (row.calls, row.fallbacks) == (before[seat][0] + 20, before[seat][1])


def test_a_row_of_fallbacks_gives_the_function_back(quiet: None) -> None:
    model, sample = LLAMA.model(), LLAMA.samples(1)[0]
    before = own(model.model.layers[0])
    plan, run = attached(LLAMA, model, [sample]), runner(model)
    for _ in range(IN_A_ROW + 1):
        run({**sample, "temperature": 30.0})
    row = plan.ledger()["attention[0]"]
    assert row.detached and row.fallbacks == IN_A_ROW
    assert not same(before, own(model.model.layers[0]))
    run(sample)
    assert plan.ledger()["attention[0]"].calls == IN_A_ROW
    plan.detach()


def test_on_guard_fail_raise() -> None:
    model, sample = LLAMA.model(), LLAMA.samples(1)[0]
    plan, run = attached(LLAMA, model, [sample], on_guard_fail="raise"), runner(model)
    with pytest.raises(Refusal) as refusal:
        run({**sample, "temperature": 30.0})
    assert refusal.value.code == "guard.arguments" and refusal.value.seat == "attention[0]"
    assert "temperature=30.0" in refusal.value.what
    plan.detach()


def test_what_is_put_over_a_seat_is_not_lost() -> None:
    model, sample = LLAMA.model(), LLAMA.samples(1)[0]
    plan = attached(LLAMA, model, [sample])
    attention = model.model.layers[0].self_attn
    ours = attention.forward
    attention.forward = lambda *args, **kwargs: ours(*args, **kwargs)
    with pytest.raises(Refusal) as refusal:
        plan.detach()
    assert refusal.value.code == "swap.replaced" and len(plan.bound) == 2
    attention.__dict__["forward"] = ours
    plan.detach()
    assert "forward" not in attention.__dict__


def test_a_second_attachment_is_told(qwen3: Attached) -> None:
    model, _plan, _run, sample = qwen3
    second = attached(QWEN3, model, [sample])
    codes = {record.code for record in second.seats if record.state == "refused"}
    assert codes == {"host.attached"} and not second.bound


def test_a_graph_holds_the_form() -> None:
    model, sample = LLAMA.model(), LLAMA.samples(1)[0]
    plan, run = attached(LLAMA, model, [sample]), runner(model)
    eager = run(sample)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    assert torch.equal(runner(compiled)(sample), eager)
    assert not torch.equal(eager, host(plan, lambda: run(sample)))
    plan.detach()
