"""Functions that a module looks up: heard on one module, and nothing else is touched."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import routes
from frtspec.runtime.spec import Routed
from tests.hosts.tiny import LLAMA, QWEN3

NAMES = {"q": "query", "k": "key", "v": "value", "mask": "attention_mask"}
ATTENTION = Routed("attention", "registry", "ALL_ATTENTION_FUNCTIONS", NAMES)
ROPE = Routed("rope", "global", "apply_rotary_pos_emb", {n: n for n in ("q", "k", "cos", "sin")})
CACHE = Routed("cache", "cache", "update", {"k": "key_states", "v": "value_states"})


class Heard:
    """Collects what a listener is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[dict[str, Any], Any]] = []

    def __call__(self, given: Any, output: Any) -> None:
        self.calls.append((dict(given), output))

    def shapes(self) -> list[dict[str, tuple[int, ...]]]:
        return [
            {name: tuple(t.shape) for name, t in given.items() if isinstance(t, Tensor)}
            for given, _ in self.calls
        ]


# ---------------------------------------------------------------- transformers


def test_three_functions_of_one_attention() -> None:
    """All at once on one module; the other layer and another model are not heard."""
    model, other = QWEN3.model(), QWEN3.model()
    sample = QWEN3.samples(1)[0]
    want = model(**sample).logits
    attention = model.model.layers[1].self_attn
    own = dict(attention.__dict__)
    heard = {routed.name: Heard() for routed in (ATTENTION, ROPE, CACHE)}
    on = [routes.listen(attention, r, heard[r.name]) for r in (ATTENTION, ROPE, CACHE)]
    assert torch.equal(model(**sample).logits, want)
    other(**sample)
    assert heard["attention"].shapes() == [
        {"q": (1, 4, 24, 32), "k": (1, 2, 24, 32), "v": (1, 2, 24, 32)}
    ]
    assert heard["attention"].calls[0][1][0].shape == (1, 24, 4, 32)
    assert heard["rope"].shapes()[0]["cos"] == (1, 24, 32)
    assert [tuple(t.shape) for t in heard["rope"].calls[0][1]] == [(1, 4, 24, 32), (1, 2, 24, 32)]
    assert heard["cache"].shapes() == [{"k": (1, 2, 24, 32), "v": (1, 2, 24, 32)}]
    for listener in (on[1], on[0], on[2]):  # in another order than they came
        listener.remove()
    assert attention.__dict__.keys() == own.keys() and "forward" not in attention.__dict__
    model(**sample)
    assert all(len(h.calls) == 1 for h in heard.values())


@pytest.mark.parametrize("kind", ["eager", "sdpa"])
def test_the_registry_is_read_by_the_config_at_every_call(kind: str) -> None:
    """A host may write its config between calls, as some policies do."""
    model = LLAMA.model()
    heard = Heard()
    listener = routes.listen(model.model.layers[0].self_attn, ATTENTION, heard)
    model.config._attn_implementation = kind
    sample = LLAMA.samples(1)[0]
    with torch.no_grad():
        found = model(**sample).logits
    listener.remove()
    with torch.no_grad():
        assert torch.equal(model(**sample).logits, found)
    assert len(heard.calls) == 1
    assert (heard.calls[0][0]["mask"] is None) == (kind == "sdpa")


def test_the_last_listener_gives_the_module_back() -> None:
    attention = LLAMA.model().model.layers[0].self_attn
    first, second = (routes.listen(attention, ROPE, Heard()) for _ in range(2))
    first.remove()
    first.remove()  # twice is once
    assert "forward" in attention.__dict__
    second.remove()
    assert "forward" not in attention.__dict__
    assert not [name for name in attention.__dict__ if name.startswith("_frt")]


# ---------------------------------------------------------------- other ways


def doubled(x: Tensor, *, by: float = 2.0) -> Tensor:
    return x * by


def told(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


class Decorated(nn.Module):
    @told
    @told
    def forward(self, x: Tensor) -> Tensor:
        return doubled(x, by=3.0)


class Inherits(Decorated):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + doubled(x)


class Holds(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rule = doubled

    def forward(self, x: Tensor) -> Tensor:
        return self.rule(x, by=5.0)

    def method(self, x: Tensor) -> Tensor:
        return self.rule(x)


GLOBAL = Routed("doubled", "global", "doubled", {"x": "x", "by": "by"})


def test_decorators_stay_around_the_function() -> None:
    module, heard = Decorated(), Heard()
    listener = routes.listen(module, GLOBAL, heard)
    x = torch.ones(2)
    assert torch.equal(module(x), x * 3)
    assert heard.calls[0][0]["by"] == 3.0 and heard.calls[0][0]["x"] is x
    assert list(inspect.signature(module.forward).parameters) == ["x"]
    listener.remove()


def test_only_the_class_s_own_code_is_heard() -> None:
    """`super().forward` keeps working, and names what it always did."""
    module, heard = Inherits(), Heard()
    listener = routes.listen(module, GLOBAL, heard)
    assert torch.equal(module(torch.ones(1)), torch.tensor([5.0]))
    assert len(heard.calls) == 1 and heard.calls[0][0]["by"] is None  # left at its default
    listener.remove()


def test_an_attribute() -> None:
    module, heard = Holds(), Heard()
    routed = Routed("rule", "attribute", "rule", {"x": "x"})
    listener = routes.listen(module, routed, heard)
    assert torch.equal(module(torch.ones(1)), torch.tensor([5.0]))
    listener.remove()
    assert module.rule is doubled and len(heard.calls) == 1


def test_a_method_of_the_class() -> None:
    module, heard = Holds(), Heard()
    listener = routes.listen(module, Routed("method", "attribute", "method", {"x": "x"}), heard)
    module.method(torch.ones(1))
    listener.remove()
    assert len(heard.calls) == 1 and "method" not in module.__dict__


@pytest.mark.parametrize(
    ("routed", "says"),
    [
        (Routed("a", "global", "nothing", {}), "forward does not name nothing"),
        (Routed("a", "global", "doubled", {"z": "z"}), "it takes x, by, and not z"),
        (Routed("a", "attribute", "nothing", {}), "it holds no function nothing"),
        (Routed("a", "processor", "doubled", {}), "it has no attention processor"),
        (Routed("a", "cache", "update", {}), "its forward takes none of cache"),
        (Routed("a", "registry", "ALL", {}), "forward does not name ALL"),
    ],
    ids=lambda value: getattr(value, "via", ""),
)
def test_what_is_not_looked_up_is_refused(routed: Routed, says: str) -> None:
    module = Decorated()
    with pytest.raises(Refusal) as refusal:
        routes.check(module, routed)
    assert refusal.value.code == "host.route" and says in refusal.value.what
    assert "forward" not in module.__dict__
    assert not [name for name in module.__dict__ if name.startswith("_frt")]


def test_a_forward_that_was_replaced_is_left_alone() -> None:
    module = Decorated()
    module.forward = lambda x: x  # type: ignore[method-assign]
    with pytest.raises(Refusal, match="replaced by something else"):
        routes.check(module, GLOBAL)


def test_a_call_that_raises_gives_the_cache_back() -> None:
    class Cache:
        def update(self, key_states: Tensor, value_states: Tensor) -> None: ...

    class Breaks(nn.Module):
        def forward(self, x: Tensor, cache: Any = None) -> Tensor:
            cache.update(x, x)
            raise ValueError("broken")

    module, cache, heard = Breaks(), Cache(), Heard()
    listener = routes.listen(module, CACHE, heard)
    with pytest.raises(ValueError, match="broken"):
        module(torch.ones(1), cache=cache)
    listener.remove()
    assert cache.__dict__ == {} and len(heard.calls) == 1
