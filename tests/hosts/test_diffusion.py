"""Bindings of diffusers hosts on the real classes: all they say, and what attach makes of it."""

from __future__ import annotations

import importlib
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from frtspec import runtime as rt
from frtspec.live.verify import problems, verify
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import host
from frtspec.runtime.observation import observe
from frtspec.runtime.spec import Seat
from tests.hosts.diffusion import COSMOS, COSMOS3, DIFFUSION, FLUX, TOKENS, WAN, Diffusion

DTYPES = (torch.float32, torch.bfloat16)


def forward(model: nn.Module) -> Any:
    return lambda sample: model(**sample)


def tensor(output: Tensor | list[Tensor]) -> Tensor:
    """A host's first output; some return a list, one of each item."""
    return output[0] if isinstance(output, list) else output


def seats(family: Diffusion, model: nn.Module) -> dict[str, Seat]:
    return {seat.name: seat for seat in family.binding().seats(model)}


@pytest.mark.parametrize("family", DIFFUSION, ids=lambda family: family.name)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda value: getattr(value, "name", str(value)))
def test_everything_a_binding_says_is_so(family: Diffusion, dtype: torch.dtype) -> None:
    """Paths, slots, layouts, dims, points and facts; every seat runs; references agree."""
    model = family.model(dtype)
    state = {name: value.clone() for name, value in model.state_dict().items()}
    report = verify(
        family.binding(), model, forward(model), observations=family.samples(dtype=dtype)
    )
    assert problems(report) == {}, report.text()
    found = Counter(seat.name.partition("[")[0] for seat in report.seats)
    assert dict(found) == family.seats
    for seat in report.seats:
        assert seat.calls and min(seat.calls) > 0, seat.name
        assert all(min(point.hits) > 0 for point in seat.points), seat.name
        if not any("parts of the host" in note for note in seat.notes):
            assert seat.reference is not None, seat.name
    left = model.state_dict()
    assert state.keys() == left.keys() and all(torch.equal(state[n], left[n]) for n in state)


@pytest.mark.parametrize("family", DIFFUSION, ids=lambda family: family.name)
def test_what_is_not_executed_is_refused_or_kept_and_the_rest_is_bound(family: Diffusion) -> None:
    model = family.model(torch.bfloat16)
    samples = family.samples(dtype=torch.bfloat16)
    with torch.no_grad():
        before = tensor(model(**samples[0])[0]).clone()
    generated = importlib.import_module(f"flashrt_gen.{family.name}")
    plan = generated.build(
        model, forward(model), observations=samples, scheme="fp8_static", rungs=("emulate",)
    )
    assert plan.seats and {record.state for record in plan.seats} <= {"bound", "kept", "refused"}
    states = {record.seat.form: set() for record in plan.seats}
    for record in plan.seats:
        states[record.seat.form].add(record.state)
    if "block" in states:  # what is inside is the block's own
        assert states["block"] == {"bound"} and "bound" not in states["swap"] | states["siblings"]
    else:
        assert "bound" in states["swap"] and states["siblings"] == {"bound"}
    assert states["route"] <= {"bound", "kept", "refused"}
    assert states.get("update", {"kept"}) <= {"kept", "refused"}
    plan.detach()
    with torch.no_grad():
        assert torch.equal(tensor(model(**samples[0])[0]), before)


# ---------------------------------------------------------------- the block of Wan


def test_the_table_form_of_a_block_is_the_block() -> None:
    """The reference with the host's own attentions inside is what the block returns."""
    model = WAN.model()
    block: Any = model.blocks[1]
    seat = seats(WAN, model)["block[1]"]
    calls: list[Any] = []
    block.register_forward_hook(lambda _, args, output: calls.append((args, output)))
    with torch.no_grad():
        model(**WAN.samples(1)[0])
    (x, text, table, rotary), y = calls[0]
    seen: dict[str, Tensor] = {}

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return inner(block.attn1, q, k, v, rotary)

    def cross(h: Tensor) -> Tensor:
        return block.attn2(block.norm2(h.float()).type_as(h), text, None, None)

    with torch.no_grad():
        found = seat.structure.reference(
            x=x,
            table=table,
            **host.seat_weights(model, seat),
            **seat.variants,
            **seat.params,
            self_attention=attend,
            cross_attention=cross,
            record=seen.__setitem__,
        )
    y_found = found if isinstance(found, Tensor) else next(t for t in found if t is not None)
    torch.testing.assert_close(y_found, y)
    assert set(seat.points) <= set(seen)


def inner(attention: Any, q: Tensor, k: Tensor, v: Tensor, rotary: Any) -> Tensor:
    """What Wan's attention does between its projections: norms, rotation, attention."""
    q, k = attention.norm_q(q), attention.norm_k(k)
    q, k, v = (t.unflatten(2, (attention.heads, -1)) for t in (q, k, v))
    cos, sin = rotary[0][..., 0::2], rotary[1][..., 1::2]

    def turned(x: Tensor) -> Tensor:
        a, b = x.unflatten(-1, (-1, 2)).unbind(-1)
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)

    q, k, v = (t.transpose(1, 2) for t in (turned(q), turned(k), v))
    out = nn.functional.scaled_dot_product_attention(q, k, v)
    return out.transpose(1, 2).flatten(2)


def test_one_timestep_a_batch_is_no_table() -> None:
    """Wan 2.1 hands a block six rows a batch; that is another region, and told so."""
    model = WAN.model()
    sample = WAN.samples(1)[0] | {"timestep": torch.tensor([7])}
    block = seats(WAN, model)["block[0]"]
    seen = observe.observe(
        model, [block], {}, [lambda: model(**sample)], capture=observe.Capture(samples=1)
    )
    refusal = seen.refusals["block[0]"]
    assert refusal.code == "host.boundary"
    assert "table" in refusal.what and "[1, 6, 24]" in refusal.what


# ---------------------------------------------------------------- what is wrong is told


@pytest.mark.parametrize(
    ("family", "name", "change", "code"),
    [
        (COSMOS, "norm1[0]", {"variants": {"style_order": "scale_first"}}, "gate.reference"),
        (COSMOS, "ffn[1]", {"variants": {"activation": "gelu_tanh"}}, "gate.reference"),
        (COSMOS, "qk[0]", {"variants": {"rope_layout": "interleaved"}}, "gate.reference"),
        (COSMOS3, "attention[0]", {"variants": {"unmasked": "all"}}, "gate.reference"),
        (COSMOS3, "full_attention[1]", {"variants": {"unmasked": "causal"}}, "gate.reference"),
        (FLUX, "single_qk[0]", {"variants": {"rope_layout": "half"}}, "gate.reference"),
        (WAN, "qk[0]", {"variants": {"norm_weight_mode": "offset"}}, "gate.reference"),
        (WAN, "cross_q[0]", {"dims": {"K": 25}}, "host.shape"),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_a_wrong_word_is_found(family: Diffusion, name: str, change: Any, code: str) -> None:
    model = family.model()
    right = seats(family, model)[name]
    wrong = replace(right, **{k: {**getattr(right, k), **v} for k, v in change.items()})
    binding = replace(family.binding(), seats=lambda _: [wrong])
    report = verify(binding, model, forward(model), observations=family.samples())
    assert code in [problem.code for problem in report.seats[0].problems]


@pytest.mark.parametrize(
    ("routed", "says"),
    [
        ({"function": "dispatch_attention"}, "does not name dispatch_attention"),
        ({"via": "global"}, "WanAttention.forward does not name dispatch_attention_fn"),
        ({"via": "attribute"}, "it holds no function dispatch_attention_fn"),
        ({"via": "cache"}, "takes none of cache"),
        ({"args": {"q": "q"}}, "and not q"),
    ],
    ids=lambda value: getattr(value, "name", str(value)),
)
def test_a_function_that_is_not_looked_up_so(routed: Any, says: str) -> None:
    model = WAN.model()
    right = seats(WAN, model)["qk[0]"]
    assert right.routed is not None
    wrong = replace(right, routed=replace(right.routed, **routed))
    binding = replace(WAN.binding(), seats=lambda _: [wrong])
    report = verify(binding, model, forward(model), observations=WAN.samples())
    found = [problem for problem in report.seats[0].problems if problem.code == "host.route"]
    assert found and says in found[0].what


@pytest.mark.parametrize(
    ("calls", "code", "says"),
    [
        ({"is_causal": False}, "gate.reference", ""),
        ({"causal": True}, "host.route", "and not causal"),
    ],
)
def test_the_calls_of_a_seat(calls: dict[str, bool], code: str, says: str) -> None:
    """One module asks for two attentions; a seat that takes the other's calls too is wrong."""
    model = COSMOS3.model()
    right = seats(COSMOS3, model)["attention[0]"]
    assert right.routed is not None
    wrong = replace(right, routed=replace(right.routed, calls=calls))
    binding = replace(COSMOS3.binding(), seats=lambda _: [wrong])
    report = verify(binding, model, forward(model), observations=COSMOS3.samples())
    (found, *_) = (problem for problem in report.seats[0].problems if problem.code == code)
    assert says in found.what


def test_an_item_that_a_tuple_has_not() -> None:
    model = FLUX.model()
    right = seats(FLUX, model)["norm1[0]"]
    assert right.boundary is not None
    outputs = {**right.boundary.outputs, "gate": rt.OutputOf(right.path, item=7)}
    wrong = replace(right, boundary=replace(right.boundary, outputs=outputs))
    seen = observe.observe(
        model,
        [wrong],
        {},
        [lambda: model(**FLUX.samples(1)[0])],
        capture=observe.Capture(samples=1),
    )
    assert "output[7] of" in seen.refusals["norm1[0]"].what


def test_a_form_that_is_not_executed_has_a_code() -> None:
    model = WAN.model()
    found = seats(WAN, model)
    from frtspec.runtime.eligibility import eligible

    placed = found["block[0]"].parts
    lost = replace(found["block[0]"], parts={"self_attention": placed["self_attention"]})
    with pytest.raises(Refusal, match="cross_attention") as refusal:
        eligible.check_form(lost)
    assert refusal.value.code == "seat.parts"
    for name in ("block[0]", "ffn[0]", "qk[0]", "attention[0]", "cross_k[0]"):
        eligible.check_form(found[name])
    assert TOKENS == 32
