"""Every check of the guard is needed: without it some call leaves the host's behaviour.

Each scenario calls one attached module in a way that it was not bound for, and
compares with the untouched host: the same values, dtype, shape, gradients, or the
same error. With all checks they agree; with the one check deleted they don't.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from frtspec.runtime.hosts import siblings
from frtspec.runtime.seats import guard, swap
from frtspec.runtime.spec import BandSpec, Route, RungSpec
from tests.runtime.bind.support import bind, rel_l2, watch
from tests.runtime.hosts_small import (
    FP8_STATIC,
    FfnFp8Static,
    TinyMLP,
    seat_named,
    tiny_decoder,
)

ROWS = torch.randn(6, 32, generator=torch.Generator().manual_seed(3))


@dataclass
class Outcome:
    """What a call came to: a tensor and the gradients it leaves, or an error."""

    error: str | None = None
    value: Tensor | None = None
    grads: list[str] = field(default_factory=list)

    def like(self, other: Outcome) -> bool:
        if self.error or other.error or self.value is None or other.value is None:
            return self.error == other.error
        mine, theirs = self.value, other.value
        if (mine.dtype, mine.shape, mine.device) != (theirs.dtype, theirs.shape, theirs.device):
            return False
        close = mine.is_meta or mine.numel() == 0 or rel_l2(mine, theirs) < 0.1
        return close and self.grads == other.grads


def outcome(model: nn.Module, call: Callable[[nn.Module], Tensor]) -> Outcome:
    torch.manual_seed(0)
    try:
        value = call(model)
    except (RuntimeError, TypeError, AttributeError) as error:
        return Outcome(error=f"{type(error).__name__}: {error}")
    if value.requires_grad:
        value.sum().backward()
    grads = [name for name, p in model.named_parameters() if p.grad is not None]
    model.zero_grad()
    return Outcome(value=value.detach(), grads=grads)


# ---------------------------------------------------------------- the calls


def mlp(model: nn.Module) -> nn.Module:
    return model.layers[0].mlp


@torch.no_grad()
def another_argument(model: nn.Module) -> Tensor:
    return mlp(model)(ROWS, gain=3.0)


@torch.no_grad()
def another_device(model: nn.Module) -> Tensor:
    return mlp(model)(ROWS.to("meta"))


@torch.no_grad()
def another_dtype(model: nn.Module) -> Tensor:
    return mlp(model)(ROWS.double())


@torch.no_grad()
def under_autocast(model: nn.Module) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return mlp(model)(ROWS)


@torch.no_grad()
def another_width(model: nn.Module) -> Tensor:
    return mlp(model)(torch.cat([ROWS, ROWS], dim=-1))


@torch.no_grad()
def more_rows(model: nn.Module) -> Tensor:
    return mlp(model)(ROWS)


@torch.no_grad()
def dropout_on(model: nn.Module) -> Tensor:
    mlp(model).dropout.train()
    try:
        return mlp(model)(ROWS)
    finally:
        mlp(model).dropout.eval()


@torch.no_grad()
def steered(model: nn.Module) -> Tensor:
    mlp(model).down_proj.register_forward_hook(lambda module, args, out: out * 2)
    return mlp(model)(ROWS)


def with_gradients(model: nn.Module) -> Tensor:
    return mlp(model)(ROWS)


@torch.no_grad()
def weights_edited(model: nn.Module) -> Tensor:
    mlp(model).up_proj.weight.mul_(-2.0)
    return mlp(model)(ROWS)


class CroppingMLP(TinyMLP):
    """Takes wider inputs too, and reads what it needs of them."""

    def forward(self, x: Tensor, gain: float = 1.0) -> Tensor:
        return super().forward(x[..., :32], gain)


class FourRows(FfnFp8Static):
    """A rung that has scratch for four rows and leaves the rest unwritten."""

    SPEC = replace(
        FfnFp8Static.SPEC,
        bands=(BandSpec("M", 1, 4, (RungSpec("torch", run="run_scratch"),)),),
    )

    def run_scratch(self, x: Tensor) -> Tensor:
        out = torch.zeros(x.shape[0], 32)
        out[:4] = self.run_emulate(x[:4]).float()
        return out


FOUR_ROWS = replace(
    FP8_STATIC,
    routes=tuple(
        Route(r.structure, r.seam, r.stats, FourRows) if r.seam == "mlp" else r
        for r in FP8_STATIC.routes
    ),
)


@dataclass(frozen=True)
class Scenario:
    """``call`` on a host; ``prepare`` shapes the host, ``options`` bind it."""

    call: Callable[[nn.Module], Tensor]
    prepare: Callable[[nn.Module], None] = lambda model: None
    host: dict[str, Any] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)

    def right(self) -> bool:
        """Whether the attached host does what the untouched host does."""
        untouched, attached = self._host(), self._host()
        seat = replace(seat_named(attached, "ffn[0]"), expects=())
        bound = bind(attached, seats=[seat], **self.options)
        swap.activate(attached, bound)
        with torch.no_grad():
            assert rel_l2(mlp(attached)(ROWS[:4]), mlp(untouched)(ROWS[:4])) < 0.1
        return outcome(attached, self.call).like(outcome(untouched, self.call))

    def _host(self) -> nn.Module:
        model = tiny_decoder(**self.host)
        self.prepare(model)
        return model


def crop(model: nn.Module) -> None:
    cropping = CroppingMLP(model.config).eval()
    cropping.load_state_dict(mlp(model).state_dict())
    model.layers[0].mlp = cropping


SCENARIOS = {
    "arguments": Scenario(another_argument),
    "device": Scenario(another_device),
    "dtype": Scenario(another_dtype),
    "autocast": Scenario(under_autocast),
    "width": Scenario(another_width, crop),
    "rows": Scenario(more_rows, options={"scheme": FOUR_ROWS, "rungs": ("torch",)}),
    "training": Scenario(dropout_on, host={"mlp_dropout": 0.9}),
    "hooks": Scenario(steered),
    "grad": Scenario(with_gradients),
    "weights": Scenario(weights_edited),
}

pytestmark = pytest.mark.filterwarnings("ignore::frtspec.runtime.seats.ledger.FallbackWarning")


def test_every_check_has_a_scenario() -> None:
    assert [check.name for check in guard.CHECKS] == list(SCENARIOS)


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_with_every_check_the_host_is_followed(name: str) -> None:
    assert SCENARIOS[name].right()


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_without_this_check_it_is_not(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rest = tuple(check for check in guard.CHECKS if check.name != name)
    monkeypatch.setattr(guard, "CHECKS", rest)
    assert not SCENARIOS[name].right()


# ---------------------------------------------------------------- what siblings share by


def another_tensor(q: nn.Module, k: nn.Module) -> Tensor:
    q(ROWS)
    return k(ROWS.flip(0))


def edited_tensor(q: nn.Module, k: nn.Module) -> Tensor:
    x = ROWS.clone()
    q(x)
    x.mul_(-1)
    return k(x)


def another_stream(q: nn.Module, k: nn.Module) -> Tensor:
    """What the first stream queues has not run yet when the second one reads."""
    x = ROWS.clone()
    q(x)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(siblings, "stream_of", lambda x: 7)
        stash = getattr(k, "_frt_stash", None)
        if stash is not None:
            stash.outputs[1].zero_()
        return k(x)


SHARED = {
    "_same_tensor": another_tensor,
    "_same_version": edited_tensor,
    "_same_stream": another_stream,
}


def siblings_right(call: Callable[[nn.Module, nn.Module], Tensor]) -> bool:
    untouched, attached = tiny_decoder(), tiny_decoder()
    swap.activate(attached, bind(attached, ["qkv[0]"]))
    theirs, ours = untouched.layers[0].self_attn, attached.layers[0].self_attn
    with torch.no_grad():
        return rel_l2(call(ours.q_proj, ours.k_proj), call(theirs.q_proj, theirs.k_proj)) < 0.1


def test_every_condition_of_sharing_has_a_scenario() -> None:
    assert [same.__name__ for same in siblings.SAME_INPUT] == list(SHARED)


@pytest.mark.parametrize("name", list(SHARED))
def test_siblings_follow_the_host(name: str) -> None:
    assert siblings_right(SHARED[name])


@pytest.mark.parametrize("name", list(SHARED))
def test_siblings_need_each_condition(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rest = tuple(same for same in siblings.SAME_INPUT if same.__name__ != name)
    monkeypatch.setattr(siblings, "SAME_INPUT", rest)
    assert not siblings_right(SHARED[name])


# ---------------------------------------------------------------- parts of the weights check


def replace_weight(model: nn.Module) -> None:
    mlp(model).up_proj.weight = nn.Parameter(torch.zeros(64, 32))


def replace_child(model: nn.Module) -> None:
    mlp(model).up_proj = nn.Linear(32, 64, bias=False)


def add_bias(model: nn.Module) -> None:
    mlp(model).up_proj.bias = nn.Parameter(torch.ones(64))


def retype(model: nn.Module) -> None:
    model.layers.half()


def edit(model: nn.Module) -> None:
    with torch.no_grad():
        mlp(model).up_proj.weight.zero_()


def patch_forward(model: nn.Module) -> None:
    mlp(model)._frt.host.forward = lambda x: x


def patch_inner_forward(model: nn.Module) -> None:
    mlp(model).down_proj.forward = lambda x: x[..., :32]


CHANGES = [
    replace_weight,
    replace_child,
    add_bias,
    retype,
    edit,
    patch_forward,
    patch_inner_forward,
]


@pytest.mark.parametrize("change", CHANGES)
def test_every_way_to_change_a_weight_is_seen(change: Callable[[nn.Module], None]) -> None:
    model = tiny_decoder()
    attachment = swap.activate(model, bind(model, ["ffn[0]"]))
    assert attachment.check() == {}
    change(model)
    assert list(attachment.check()) == ["ffn[0]"]
    x = ROWS.half() if change is retype else ROWS
    with torch.no_grad():
        assert torch.equal(mlp(model)(x), mlp(model)._frt.host.forward(x))
    assert attachment.ledger()["ffn[0]"].fallbacks == 1


def test_a_thread_has_its_own_stash() -> None:
    """Interleaved threads each compute their siblings once."""
    import threading

    model = tiny_decoder()
    bound = bind(model, ["qkv[0]"], seen=watch(model))
    swap.activate(model, bound)
    attention, runs, turn = model.layers[0].self_attn, [], threading.Barrier(2)
    impl = bound[0].impl
    original = type(impl).run_emulate

    def counted(self: Any, x: Tensor) -> Any:
        runs.append(threading.get_ident())
        return original(self, x)

    def serve() -> None:
        with torch.no_grad():
            x = ROWS.clone()
            for member in (attention.q_proj, attention.k_proj, attention.v_proj):
                member(x)
                turn.wait()

    type(impl).run_emulate = counted
    try:
        threads = [threading.Thread(target=serve) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        type(impl).run_emulate = original
    assert len(runs) == 2 and len(set(runs)) == 2


# ---------------------------------------------------------------- the quick way


@pytest.mark.parametrize("name", list(SCENARIOS))
def test_the_quick_way_lets_nothing_pass_that_a_check_stops(name: str) -> None:
    """Of every call that some check is there for, only the checks decide."""
    passed = []
    quick, slow = guard.Quick.passes, guard.Guard.failed

    def told(self: guard.Quick, args: tuple[Any, ...]) -> bool:
        passed.append(quick(self, args))
        if passed[-1]:
            assert slow(self.guard, args, ()) is None
        return passed[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard.Quick, "passes", told)
        assert SCENARIOS[name].right()
    assert passed[0] and passed[-1] is False or name == "arguments"
