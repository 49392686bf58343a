"""Calibration: what is measured, how it reduces, and what is refused by name."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from frtspec.runtime.calibration.statistics import percentile_of
from frtspec.runtime.errors import Refusal
from frtspec.runtime.observation.observe import Capture, observe
from frtspec.runtime.spec import Boundary, InputOf, OutputOf, Seat, Stat
from tests.runtime.bind.support import watch
from tests.runtime.hosts_small import (
    TinyDecoder,
    seat_named,
    tiny_decoder,
    tiny_seats,
    token_batches,
)

AMAX = {"x_after_norm": (Stat("amax"),), "act_after_mul": (Stat("amax"),)}


def only_ffn(model: nn.Module) -> Seat:
    return seat_named(model, "ffn[0]")


def hooks_on(model: nn.Module) -> int:
    return sum(len(m._forward_hooks) + len(m._forward_pre_hooks) for m in model.modules())


def inputs_of(model: nn.Module, path: str, batches: list[Tensor]) -> list[list[Tensor]]:
    """What really goes into a module, sample by sample, seen by a hook of our own."""
    seen: list[list[Tensor]] = []
    module = model.get_submodule(path)
    handle = module.register_forward_pre_hook(lambda _, args: seen[-1].append(args[0].clone()))
    with torch.no_grad():
        for batch in batches:
            seen.append([])
            model(batch)
    handle.remove()
    return seen


# ---------------------------------------------------------------- what is measured


def test_amax_of_each_sample_is_the_largest_over_its_calls() -> None:
    model, batches = tiny_decoder(), token_batches(4)
    pairs = [(batches[0], batches[1]), (batches[2], batches[3])]
    thunks = [lambda p=pair: [model(batch) for batch in p] for pair in pairs]
    seat = only_ffn(model)
    seen = observe(model, [seat], {seat.name: AMAX}, thunks)
    truth = inputs_of(model, "layers.0.mlp.down_proj", batches)
    peaks = [float(calls[0].abs().max()) for calls in truth]
    expected = (max(peaks[:2]), max(peaks[2:]))
    assert seen.per_sample("ffn[0]", "act_after_mul") == expected
    assert seen.calls("ffn[0]") == 4 and seen.samples == 2
    assert seen.rows("ffn[0]") == (14,)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=40), st.floats(0.001, 100))
def test_percentile_is_numpys(values: list[float], percentile: float) -> None:
    samples = torch.tensor(values, dtype=torch.float64).reshape(-1, 1)
    expected = float(np.percentile(np.array(values), percentile))
    assert float(percentile_of(samples, percentile)) == pytest.approx(expected, rel=1e-12)


def test_percentile_reduces_across_samples_not_inside() -> None:
    model = tiny_decoder()
    full = watch(model, percentile=100.0)
    half = watch(model, percentile=50.0)
    values = sorted(full.per_sample("ffn[0]", "act_after_mul"))
    assert full.amax("ffn[0]", "act_after_mul") == values[-1]
    assert half.amax("ffn[0]", "act_after_mul") == values[1]


def test_per_channel_statistics_keep_the_channels() -> None:
    model, batches = tiny_decoder(), token_batches(2)
    seat = only_ffn(model)
    wanted = {seat.name: {"x_after_norm": (Stat("amax", "channel"),)}}
    thunks = [lambda b=batch: model(b) for batch in batches]
    seen = observe(model, [seat], wanted, thunks, percentile=100.0)
    truth = inputs_of(model, "layers.0.mlp", batches)
    expected = torch.cat([calls[0].reshape(-1, 32) for calls in truth]).abs().amax(0)
    assert torch.equal(seen.statistic("ffn[0]", "x_after_norm").float(), expected)


def test_outputs_and_named_arguments_are_places_too() -> None:
    model = tiny_decoder()
    seat = replace(
        only_ffn(model),
        points={
            "x_after_norm": OutputOf("layers.0.post_attention_layernorm"),
            "act_after_mul": InputOf("layers.0.self_attn", "hidden_states"),
        },
    )
    seen = watch(model, [seat], percentile=100.0)
    plain = watch(model, [only_ffn(model)], percentile=100.0)
    assert seen.amax("ffn[0]", "x_after_norm") == plain.amax("ffn[0]", "x_after_norm")
    norm = inputs_of(model, "layers.0.self_attn.q_proj", token_batches())
    peak = max(float(calls[0].abs().max()) for calls in norm)
    assert seen.amax("ffn[0]", "act_after_mul") == peak


class KeywordHost(nn.Module):
    """Calls its MLP by keyword."""

    def __init__(self, model: TinyDecoder) -> None:
        super().__init__()
        self.config, self.layers, self.embed = model.config, model.layers, model.embed_tokens

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            layer.self_attn(hidden_states=layer.input_layernorm(input=x))
            x = layer.mlp(x=x)
        return x


def test_keyword_calls_are_seen() -> None:
    host = KeywordHost(tiny_decoder()).eval()
    seat = replace(only_ffn(host), boundary=None)
    seen = watch(host, [seat])
    assert not seen.refusals
    assert seen.form("ffn[0]").calls == {"keyword"}
    assert seen.amax("ffn[0]", "x_after_norm") > 0
    assert seen.captured("ffn[0]")[0].seat_inputs[0].shape == (2, 7, 32)


def test_the_form_of_calls_is_recorded() -> None:
    model = tiny_decoder()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        seen = watch(model)
    ((context, out),) = seen.form("ffn[0]").out_dtypes.items()
    assert context.autocast == torch.bfloat16 and out == torch.bfloat16
    assert seen.form("ffn[0]").returns == {"tensor"}
    assert seen.form("ffn[0]").widths == {(32,)}


# ---------------------------------------------------------------- streaming


def test_max_samples_pulls_no_further() -> None:
    model, pulled = tiny_decoder(), []

    def endless() -> Iterator[Callable[[], Tensor]]:
        for count in itertools.count():
            pulled.append(count)
            yield lambda: model(token_batches(1)[0])

    seen = watch_stream(model, endless(), max_samples=3)
    assert seen.samples == 3 and pulled == [0, 1, 2]


def watch_stream(model: nn.Module, thunks: Any, **options: Any) -> Any:
    seat = only_ffn(model)
    return observe(model, [seat], {seat.name: AMAX}, thunks, **options)


def test_outputs_are_kept_only_when_asked() -> None:
    model = tiny_decoder()
    assert watch(model).outputs == []
    kept = watch(model, keep_outputs=True).outputs
    with torch.no_grad():
        assert torch.equal(kept[1], model(token_batches()[1]))


@pytest.mark.parametrize("percentile", [0.0, -1.0, 100.1, float("nan")])
def test_a_percentile_outside_its_range_is_refused(percentile: float) -> None:
    with pytest.raises(Refusal) as caught:
        watch(tiny_decoder(), percentile=percentile)
    assert caught.value.code == "option.percentile"


def test_no_samples_are_refused() -> None:
    model = tiny_decoder()
    with pytest.raises(Refusal) as caught:
        watch_stream(model, [])
    assert caught.value.code == "calibration.empty"
    with pytest.raises(Refusal) as caught:
        watch_stream(model, [lambda: None], max_samples=0)
    assert caught.value.code == "option.max_samples"


# ---------------------------------------------------------------- hooks


def test_hooks_are_gone_after_success_and_failure() -> None:
    model = tiny_decoder()
    watch(model)
    assert hooks_on(model) == 0

    def broken() -> None:
        model(token_batches(1)[0])
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        watch_stream(model, [broken])
    assert hooks_on(model) == 0


def test_hooks_are_gone_when_hooking_itself_is_interrupted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = tiny_decoder()

    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    module = model.layers[1].mlp.down_proj
    monkeypatch.setattr(module, "register_forward_pre_hook", interrupted)
    with pytest.raises(KeyboardInterrupt):
        watch(model)
    assert hooks_on(model) == 0


def test_the_host_is_not_changed_by_observing() -> None:
    model, batch = tiny_decoder(), token_batches(1)[0]
    with torch.no_grad():
        before = model(batch)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    watch(model)
    with torch.no_grad():
        assert torch.equal(model(batch), before)
    assert all(torch.equal(state[name], value) for name, value in model.state_dict().items())


# ---------------------------------------------------------------- refusals of one seat


def refusal(model: nn.Module, seat: Seat, **options: Any) -> Refusal:
    """The refusal of this seat; another seat is observed beside it without trouble."""
    other = seat_named(model, "ffn[1]")
    seen = watch(model, [seat, other], **options)
    assert other.name not in seen.refusals
    found = seen.refusals[seat.name]
    assert found.seat == seat.name and seat.name in str(found)
    return found


def test_a_module_that_never_runs_is_refused() -> None:
    model = tiny_decoder()
    layer = model.layers[0]
    model.layers[0].mlp.unused = nn.Linear(32, 32)
    seat = replace(only_ffn(model), path="layers.0.mlp.unused", boundary=None)
    assert refusal(model, seat).code == "host.never_called"
    direct = layer.mlp.forward
    layer.mlp.register_module("inner", None)

    def bypass(hidden_states: Tensor, attention_mask: Any = None) -> Tensor:
        return hidden_states + direct(layer.post_attention_layernorm(hidden_states))

    layer.forward = bypass
    assert refusal(model, only_ffn(model)).code == "host.never_called"


def test_a_point_that_is_never_reached_is_refused_with_its_place() -> None:
    model = tiny_decoder()
    model.layers[0].mlp.idle = nn.Linear(32, 32)
    seat = only_ffn(model)
    seat = replace(seat, points={**seat.points, "act_after_mul": InputOf("layers.0.mlp.idle")})
    found = refusal(model, seat)
    assert found.code == "calibration.never_hit"
    assert "act_after_mul" in found.what and "layers.0.mlp.idle" in found.what


def test_a_point_reached_in_some_samples_only_is_refused() -> None:
    model, batches = tiny_decoder(), token_batches()
    model.layers[0].mlp.sometimes = nn.Identity()
    calls = []

    def hook(module: nn.Module, args: tuple[Any, ...]) -> None:
        calls.append(1)
        if len(calls) != 2:
            module.sometimes(args[0])

    model.layers[0].mlp.register_forward_pre_hook(hook)
    seat = only_ffn(model)
    points = {**seat.points, "act_after_mul": InputOf("layers.0.mlp.sometimes")}
    found = refusal(model, replace(seat, points=points), batches=batches)
    assert found.code == "calibration.uneven"
    assert "2 of 3 samples" in found.what and "samples 1" in found.what


@pytest.mark.parametrize(
    ("value", "code", "word"),
    [
        (0.0, "calibration.zero", "all zero"),
        (float("nan"), "calibration.not_finite", "NaN"),
        (float("inf"), "calibration.not_finite", "Inf"),
    ],
)
def test_values_that_give_no_scale_are_refused(value: float, code: str, word: str) -> None:
    model = tiny_decoder()
    model.layers[0].mlp.down_proj.register_forward_pre_hook(
        lambda _, args: (torch.full_like(args[0], value),)
    )
    model.layers[0].mlp.register_forward_hook(lambda _, args, out: torch.zeros_like(out))
    found = refusal(model, only_ffn(model))
    assert found.code == code
    assert "act_after_mul" in found.what and word in found.what


def test_a_nan_in_one_call_of_one_sample_is_found() -> None:
    model = tiny_decoder()
    down, calls = model.layers[0].mlp.down_proj, []

    def poison(_: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
        calls.append(1)
        x = args[0].clone()
        if len(calls) == 2:
            x[0, 0, 0] = float("nan")
        return (x,)

    down.register_forward_pre_hook(poison)
    model.layers[0].mlp.register_forward_hook(lambda _, args, out: torch.zeros_like(out))
    found = refusal(model, only_ffn(model))
    assert found.code == "calibration.not_finite" and "samples 1" in found.what


def test_a_sample_without_tokens_reaches_no_point() -> None:
    model = tiny_decoder()
    thunks = [lambda: model.layers[0].mlp(torch.zeros(2, 0, 32))]
    seen = watch_stream(model, thunks)
    assert seen.refusals["ffn[0]"].code == "calibration.never_hit"


def test_a_point_without_a_place_and_an_unknown_statistic_are_refused() -> None:
    model = tiny_decoder()
    seat = replace(only_ffn(model), points={"x_after_norm": InputOf("layers.0.mlp")})
    assert refusal(model, seat).code == "calibration.no_place"
    thunks = [lambda: model(token_batches(1)[0])]
    wanted = {"ffn[0]": {"x_after_norm": (Stat("second_moment", "row"),)}}
    seen = observe(model, [only_ffn(model)], wanted, thunks)
    assert seen.refusals["ffn[0]"].code == "calibration.statistic"


def test_a_wrong_path_is_refused_with_the_nearest() -> None:
    model = tiny_decoder()
    found = refusal(model, replace(only_ffn(model), path="model.layers.0.mlp"))
    assert found.code == "host.path" and "layers.0.mlp" in found.fix


# ---------------------------------------------------------------- siblings


def qkv_refusal(change: Callable[[Any], None]) -> Refusal | None:
    model = tiny_decoder()
    change(model.layers[0].self_attn)
    return watch(model, [seat_named(model, "qkv[0]")]).refusals.get("qkv[0]")


def test_siblings_that_share_their_input_are_proven() -> None:
    assert qkv_refusal(lambda attention: None) is None


def attention_forward(self: Any, order: str, share: Callable[[Tensor, str], Tensor]) -> Any:
    original = type(self).forward

    def forward(*, hidden_states: Tensor, **kwargs: Any) -> Any:
        for name in order:
            getattr(self, f"{name}_proj")(share(hidden_states, name))
        result = original(self, hidden_states=hidden_states, **kwargs)
        return result

    return forward


def test_another_order_is_refused() -> None:
    def change(attention: Any) -> None:
        attention.forward = attention_forward(attention, "kqv", lambda x, _: x)

    found = qkv_refusal(change)
    assert found is not None and found.code == "siblings.call_order"
    assert "k_proj was called where" in found.what and "q_proj was due" in found.what


def test_a_copy_of_the_input_is_refused() -> None:
    def change(attention: Any) -> None:
        attention.forward = attention_forward(
            attention, "qkv", lambda x, name: x.clone() if name == "k" else x
        )

    found = qkv_refusal(change)
    assert found is not None and found.code == "siblings.shared_input"
    assert "k_proj" in found.what


@pytest.mark.parametrize("inference", [False, True])
def test_an_input_edited_between_members_is_refused(inference: bool) -> None:
    def change(attention: Any) -> None:
        def edit(x: Tensor, name: str) -> Tensor:
            return x.mul_(2) if name == "v" else x

        attention.forward = attention_forward(attention, "qkv", edit)

    model = tiny_decoder()
    change(model.layers[0].self_attn)
    seat = seat_named(model, "qkv[0]")
    with torch.inference_mode(inference):
        seen = watch(model, [seat])
    found = seen.refusals["qkv[0]"]
    assert found.code == "siblings.shared_input" and "changed" in found.what


def test_a_member_left_out_is_refused() -> None:
    def change(attention: Any) -> None:
        def forward(*, hidden_states: Tensor, **kwargs: Any) -> Any:
            attention.q_proj(hidden_states)
            attention.k_proj(hidden_states)
            return torch.zeros_like(hidden_states), None

        attention.forward = forward

    found = qkv_refusal(change)
    assert found is not None and found.code == "host.never_called"
    assert "v_proj" in found.what


# ---------------------------------------------------------------- captures


def test_captures_hold_the_boundary_and_the_seat() -> None:
    model, batches = tiny_decoder(), token_batches()
    seen = watch(model, batches=batches)
    captures = seen.captured("ffn[0]")
    assert len(captures) == 3
    with torch.no_grad():
        for capture in captures:
            layer = model.layers[0]
            normed = layer.post_attention_layernorm(capture.inputs["x"])
            assert torch.equal(normed, capture.seat_inputs[0])
            assert torch.equal(layer.mlp(normed), capture.seat_outputs)
            assert torch.equal(capture.inputs["x"] + capture.seat_outputs, capture.outputs["y"])
    qkv = seen.captured("qkv[0]")[0]
    assert [tuple(y.shape) for y in qkv.seat_outputs] == [(2, 7, 32), (2, 7, 16), (2, 7, 16)]
    assert qkv.inputs == {} and len(qkv.seat_inputs) == 1


def test_captures_are_bounded_and_rows_stay_aligned() -> None:
    model = tiny_decoder()
    seen = watch(model, capture=Capture(samples=2, calls=1, max_rows=5))
    captures = seen.captured("ffn[0]")
    assert len(captures) == 2
    for capture in captures:
        assert capture.inputs["x"].shape == (5, 32)
        with torch.no_grad():
            out = model.layers[0].mlp(capture.seat_inputs[0])
        torch.testing.assert_close(out, capture.seat_outputs)
    everything = watch(model).captured("ffn[0]")[0].inputs["x"].reshape(-1, 32)
    assert torch.equal(captures[0].inputs["x"][0], everything[0])


def test_captures_own_their_memory() -> None:
    model = tiny_decoder()
    model.layers[0].mlp.register_forward_hook(lambda _, args, out: out)
    seen = watch(model)
    capture = seen.captured("ffn[0]")[0]
    kept = capture.seat_outputs.clone()
    with torch.no_grad():
        model(token_batches(1, seed=5)[0])
        model.layers[0].mlp.down_proj.weight.zero_()
    assert torch.equal(capture.seat_outputs, kept)
    assert not capture.seat_outputs.requires_grad


def test_repeated_outputs_are_captured_by_index() -> None:
    model = tiny_decoder()
    seat = seat_named(model, "qkv[0]")
    assert seat.siblings is not None
    boundary = Boundary(
        path=seat.path,
        inputs={"x": InputOf(seat.siblings.members[0])},
        outputs={"y": tuple(OutputOf(path) for path in seat.siblings.members)},
    )
    capture = watch(model, [replace(seat, boundary=boundary)]).captured("qkv[0]")[0]
    assert list(capture.outputs) == ["y[0]", "y[1]", "y[2]"]
    for position, value in enumerate(capture.outputs.values()):
        assert torch.equal(value, capture.seat_outputs[position])


def test_a_boundary_that_does_not_pass_is_refused() -> None:
    model = tiny_decoder()
    model.layers[0].mlp.idle = nn.Linear(32, 32)
    seat = only_ffn(model)
    assert seat.boundary is not None
    boundary = replace(seat.boundary, inputs={"x": InputOf("layers.0.mlp.idle")})
    found = refusal(model, replace(seat, boundary=boundary))
    assert found.code == "host.boundary" and "input of layers.0.mlp.idle" in found.what


# ---------------------------------------------------------------- notes


def test_dispersion_and_clipping_are_told() -> None:
    model = tiny_decoder()
    loud = [0]

    def scale(_: nn.Module, args: tuple[Tensor]) -> tuple[Tensor]:
        loud[0] += 1
        return (args[0] * (50 if loud[0] == 3 else 1),)

    model.layers[0].mlp.down_proj.register_forward_pre_hook(scale)
    seen = watch(model, [only_ffn(model)], percentile=60.0, batches=token_batches(5))
    kinds = {(note.point, note.kind) for note in seen.notes}
    assert ("act_after_mul", "dispersion") in kinds and ("act_after_mul", "clipped") in kinds
    assert all(note.seat == "ffn[0]" for note in seen.notes)


def test_every_seat_of_the_tiny_host_is_observable() -> None:
    model = tiny_decoder()
    seen = watch(model)
    assert seen.refusals == {}
    assert all(seen.calls(seat.name) == 3 for seat in tiny_seats(model))
