"""An attached module: how it is called, when it falls back, and what it looks like."""

from __future__ import annotations

import threading
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.seats import swap
from frtspec.runtime.seats.ledger import IN_A_ROW, FallbackWarning
from frtspec.runtime.seats.seatmodule import SeatModule
from tests.runtime.bind.support import attach, bind, rel_l2, run
from tests.runtime.hosts_small import tiny_decoder, token_batches

X = torch.randn(2, 3, 32, generator=torch.Generator().manual_seed(4)) / 3


@pytest.fixture(autouse=True)
def inference() -> Any:
    with torch.no_grad():
        yield


def mlp(model: nn.Module) -> Any:
    return model.layers[0].mlp


# ---------------------------------------------------------------- calls


def test_positional_and_keyword_calls_run_the_same_form() -> None:
    model = tiny_decoder()
    host = mlp(model)
    attachment = attach(model, ["ffn[0]"])
    by_place, by_name = mlp(model)(X), mlp(model)(x=X)
    assert torch.equal(by_place, by_name)
    assert 0 < rel_l2(by_place, host(X)) < 0.1
    assert torch.equal(mlp(model)(X, 1.0), by_place)
    assert torch.equal(mlp(model)(X, gain=1.0), by_place)
    ledger = attachment.ledger()["ffn[0]"]
    assert (ledger.calls, ledger.fallbacks) == (4, 0) and ledger.clean


def test_inputs_with_strides_of_their_own() -> None:
    model = tiny_decoder()
    attach(model, ["ffn[0]"])
    wide = torch.randn(2, 3, 64) / 3
    for x in (wide[..., 16:48], wide.transpose(0, 1)[..., :32], wide[:, ::2, :32]):
        assert not x.is_contiguous()
        assert torch.equal(mlp(model)(x), mlp(model)(x.contiguous()))


def test_a_fallback_is_the_hosts_own_result() -> None:
    model = tiny_decoder()
    host = mlp(model)
    attach(model, ["ffn[0]"])
    with pytest.warns(FallbackWarning):
        assert torch.equal(mlp(model)(X, gain=2.0), host(X, gain=2.0))


def test_under_autocast_the_bound_form_runs_where_it_was_bound_so() -> None:
    model = tiny_decoder()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        attachment = attach(model, ["ffn[0]", "o[0]"])
        out = mlp(model)(X)
    assert out.dtype == torch.bfloat16
    assert attachment.ledger()["ffn[0]"].clean
    assert torch.equal(
        out, mlp(model)._frt.forms.forms[0].impl.run(X.reshape(-1, 32)).view(2, 3, 32)
    )


def test_inference_mode_works() -> None:
    model = tiny_decoder()
    attachment = attach(model)
    with torch.inference_mode():
        model(token_batches(1)[0])
    assert all(ledger.clean for ledger in attachment.ledger().values())
    assert attachment.ledger()["qkv[0]"].calls == 3


def test_errors_of_a_kernel_name_the_seat_and_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_decoder()
    attachment = attach(model, ["ffn[0]"])

    def broken(self: Any, x: Tensor) -> Tensor:
        raise RuntimeError("launch failed")

    impl = mlp(model)._frt.forms.forms[0].impl
    monkeypatch.setattr(type(impl), "run_emulate", broken)
    with pytest.raises(RuntimeError, match="launch failed") as caught:
        mlp(model)(X)
    assert caught.value.__notes__ == ["in seat ffn[0] (fp8_static on emulate)"]
    assert attachment.ledger()["ffn[0]"].fallbacks == 0


# ---------------------------------------------------------------- siblings


def test_siblings_compute_once_and_agree_with_the_pack(monkeypatch: pytest.MonkeyPatch) -> None:
    model = tiny_decoder()
    attention = model.layers[0].self_attn
    (bound,) = bind(model, ["qkv[0]"])
    whole = bound.call(X)
    runs = []
    original = type(bound.impl).run_emulate
    monkeypatch.setattr(
        type(bound.impl), "run_emulate", lambda self, x: (runs.append(1), original(self, x))[1]
    )
    swap.activate(model, [bound])
    outs = [attention.q_proj(X), attention.k_proj(X), attention.v_proj(X)]
    assert len(runs) == 1
    for mine, expected in zip(outs, whole, strict=True):
        assert torch.equal(mine, expected) and mine.is_contiguous()
    assert len({out.untyped_storage().data_ptr() for out in outs}) == 3
    stash = attention.q_proj._frt_stash
    assert stash.x is None and stash.outputs == []


def test_siblings_out_of_order_or_repeated_stay_right() -> None:
    model = tiny_decoder()
    attach(model, ["qkv[0]"])
    attention = model.layers[0].self_attn
    q, k, v = (attention.q_proj(X), attention.k_proj(X), attention.v_proj(X))
    assert torch.equal(attention.v_proj(X), v) and torch.equal(attention.k_proj(X), k)
    assert torch.equal(attention.q_proj(X), q) and torch.equal(attention.q_proj(X), q)


def test_siblings_fall_back_one_by_one_and_go_back_together() -> None:
    model = tiny_decoder()
    attention = model.layers[0].self_attn
    hosts = [attention.q_proj, attention.k_proj, attention.v_proj]
    attachment = attach(model, ["qkv[0]"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(IN_A_ROW):
            with pytest.raises(RuntimeError):
                attention.k_proj(X.double())
    assert [attention.q_proj, attention.k_proj, attention.v_proj] == hosts
    assert attachment.ledger()["qkv[0]"].detached


# ---------------------------------------------------------------- ledger


def test_one_warning_for_each_reason() -> None:
    model = tiny_decoder()
    attachment = attach(model, ["ffn[0]"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            mlp(model)(X, gain=2.0)
            with torch.autocast("cpu", dtype=torch.bfloat16):
                mlp(model)(X)
    texts = [str(w.message) for w in caught if w.category is FallbackWarning]
    assert len(texts) == 2
    assert "ffn[0]" in texts[0] and "gain" in texts[0] and "autocast" in texts[1]
    ledger = attachment.ledger()["ffn[0]"]
    assert ledger.reasons == {"arguments": 3, "autocast": 3}
    assert (ledger.calls, ledger.fallbacks, ledger.clean) == (6, 6, False)
    assert ledger.last_reason is not None and "autocast" in ledger.last_reason
    assert ledger.form == "fp8_static on emulate"


@pytest.mark.filterwarnings("ignore::frtspec.runtime.seats.ledger.FallbackWarning")
def test_so_many_in_a_row_give_the_seat_back_for_good() -> None:
    model = tiny_decoder()
    host = mlp(model)
    attachment = attach(model, ["ffn[0]", "ffn[1]"])
    for _ in range(IN_A_ROW - 1):
        mlp(model)(X, gain=2.0)
    mlp(model)(X)
    for _ in range(IN_A_ROW - 1):
        mlp(model)(X, gain=2.0)
    assert isinstance(mlp(model), SeatModule)
    mlp(model)(X, gain=2.0)
    assert mlp(model) is host
    ledger = attachment.ledger()
    assert ledger["ffn[0]"].detached and not ledger["ffn[1]"].detached
    assert isinstance(model.layers[1].mlp, SeatModule)
    attachment.enable()
    assert mlp(model) is host
    attachment.detach()
    assert mlp(model) is host


def test_raise_refuses_and_never_gives_back() -> None:
    model = tiny_decoder()
    attachment = attach(model, ["ffn[0]"], on_guard_fail="raise")
    for _ in range(IN_A_ROW + 1):
        with pytest.raises(Refusal) as caught:
            mlp(model)(X, gain=2.0)
    assert caught.value.code == "guard.arguments" and caught.value.seat == "ffn[0]"
    assert isinstance(mlp(model), SeatModule)
    assert attachment.ledger()["ffn[0]"].fallbacks == IN_A_ROW + 1


def test_rows_outside_the_band_are_the_hosts_and_no_fallback() -> None:
    model = tiny_decoder()
    attachment = attach(model, ["ffn[0]"], on_guard_fail="raise")
    assert mlp(model)(X[:0]).shape == (0, 3, 32)
    ledger = attachment.ledger()["ffn[0]"]
    assert (ledger.calls, ledger.otherwise_host, ledger.fallbacks) == (1, 1, 0) and ledger.clean


def test_a_seat_that_never_ran_is_not_clean() -> None:
    assert not attach(tiny_decoder(), ["ffn[0]"]).ledger()["ffn[0]"].clean


def test_threads_count_and_compute_right() -> None:
    model = tiny_decoder()
    attachment = attach(model)
    batches = token_batches(8, seed=11)
    alone = [run(model, batch) for batch in batches]
    start = attachment.ledger()["ffn[0]"].calls
    results: dict[int, Tensor] = {}

    def serve(place: int) -> None:
        for _ in range(10):
            results[place] = run(model, batches[place])

    threads = [threading.Thread(target=serve, args=(place,)) for place in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(torch.equal(results[place], alone[place]) for place in range(8))
    ledger = attachment.ledger()
    assert ledger["ffn[0]"].calls == start + 80
    assert all(found.clean for found in ledger.values())


# ---------------------------------------------------------------- standing for the host


def test_the_attached_model_reads_as_the_host() -> None:
    model = tiny_decoder()
    host = mlp(model)
    state = model.state_dict()
    names = [name for name, _ in model.named_parameters()]
    tensors = {name: param for name, param in model.named_parameters()}
    module_names = [name for name, _ in model.named_modules()]
    attach(model)
    assert list(model.state_dict()) == list(state)
    assert model.state_dict()._metadata == state._metadata
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())
    assert [name for name, _ in model.named_parameters()] == names
    assert all(param is tensors[name] for name, param in model.named_parameters())
    assert [name for name, _ in model.named_modules()] == module_names
    assert not dict(model.named_buffers())
    seat = mlp(model)
    assert seat.gate_proj.weight is host.gate_proj.weight
    assert seat.gate_proj is host.gate_proj and seat.act_fn is host.act_fn
    assert model.layers[0].self_attn.o_proj.in_features == 32
    assert model.layers[0].input_layernorm.normalized_shape == (32,)
    assert "ffn[0]" in repr(seat) and "TinyMLP" in repr(seat)
    with pytest.raises(AttributeError):
        seat.no_such_thing  # noqa: B018


def test_a_state_dict_round_trip_is_strict() -> None:
    model = tiny_decoder()
    attach(model)
    tiny_decoder(seed=3).load_state_dict(model.state_dict(), strict=True)


def test_attributes_set_on_a_seat_land_on_the_host() -> None:
    model = tiny_decoder()
    host = mlp(model)
    attachment = attach(model, ["ffn[0]"])
    mlp(model).layer_idx = 7
    mlp(model).extra = nn.Linear(2, 2)
    mlp(model).scale = nn.Parameter(torch.ones(1))
    assert host.layer_idx == 7 and "extra" in host._modules and "scale" in host._parameters
    del mlp(model).layer_idx
    assert not hasattr(host, "layer_idx")
    attachment.detach()
    assert mlp(model).extra is host.extra


class Sized(nn.Sequential):
    """A host module with items."""


def test_items_of_a_container_host() -> None:
    model = tiny_decoder()
    seat_host = Sized(*mlp(model).children())
    (bound,) = bind(model, ["ffn[0]"])
    seat = SeatModule(seat_host, bound.forms, bound.guard, bound.counter)
    assert len(seat) == len(seat_host) and seat[0] is seat_host[0]
    assert list(seat) == list(seat_host) and bool(seat)


def test_hooks_on_either_module_fire_once() -> None:
    model = tiny_decoder()
    host = mlp(model)
    seen: list[str] = []
    before = host.register_forward_hook(lambda m, a, o: seen.append("put on the host"))
    attachment = attach(model, ["ffn[0]"])
    seen.clear()
    after = mlp(model).register_forward_pre_hook(lambda m, a: seen.append("put on the seat"))
    mlp(model)(X)
    assert seen == ["put on the seat", "put on the host"]
    seen.clear()
    with pytest.warns(FallbackWarning):
        mlp(model)(X, gain=2.0)
    assert seen == ["put on the seat", "put on the host"]
    before.remove()
    attachment.detach()
    seen.clear()
    mlp(model)(X)
    assert seen == ["put on the seat"]
    after.remove()
    assert not host._forward_hooks and not host._forward_pre_hooks


def test_hooks_that_replace_values_still_do() -> None:
    model = tiny_decoder()
    mlp(model).register_forward_hook(lambda m, a, out: out * 2)
    doubled = mlp(model)(X)
    attach(model, ["ffn[0]"])
    assert rel_l2(mlp(model)(X), doubled) < 0.1


def test_training_mode_reaches_the_host_below() -> None:
    model = tiny_decoder()
    host = mlp(model)
    attach(model, ["ffn[0]"])
    model.layers.train()
    assert host.training and host.dropout.training and mlp(model).training
    model.layers.eval()
    assert not host.training and not host.dropout.training and not mlp(model).training


@pytest.mark.filterwarnings("ignore::frtspec.runtime.seats.ledger.FallbackWarning")
def test_moving_a_part_of_the_model_leaves_it_the_host() -> None:
    model = tiny_decoder()
    attach(model, ["ffn[0]"])
    model.layers.double()
    assert mlp(model).gate_proj.weight.dtype == torch.float64
    expected = mlp(model)._frt.host.forward(X.double())
    assert torch.equal(mlp(model)(X.double()), expected)


def test_loading_into_a_part_of_the_model_leaves_it_the_host() -> None:
    model, other = tiny_decoder(), tiny_decoder(seed=5)
    attachment = attach(model, ["ffn[0]"])
    model.layers.load_state_dict(other.layers.state_dict(), strict=True)
    assert list(attachment.check()) == ["ffn[0]"]
    with pytest.warns(FallbackWarning, match="changed since it was packed"):
        assert torch.equal(mlp(model)(X), mlp(other)(X))
