"""Forms of a seat on a real host: a block owns its children, links are told of."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from frtspec import runtime as rt
from frtspec.runtime.errors import Refusal
from frtspec.runtime.spec import Seat
from tests.hosts.tiny import LLAMA

HOST: Any = importlib.import_module("flashrt_gen.llama").HOST
MLP = "model.layers.0.mlp"


def seats(model: nn.Module) -> dict[str, Seat]:
    return {seat.name: seat for seat in HOST.seats(model)}


def inside(model: nn.Module) -> Seat:
    """A seat at the last product of the first layer's MLP."""
    at = f"{MLP}.down_proj"
    right = seats(model)["o[0]"]
    ffn = seats(model)["ffn[0]"]
    return replace(
        right,
        name="down[0]",
        path=at,
        dims={"K": ffn.dims["F"], "N": ffn.dims["D"]},
        variants={"bias": "none", "epilogue": "none"},
        slots={"w": rt.Weight(f"{at}.weight", "out_in")},
        points={"x_in": rt.InputOf(at)},
        boundary=rt.Boundary(path=at, inputs={"x": rt.InputOf(at)}, outputs={"y": rt.OutputOf(at)}),
        expects=(),
    )


def build(model: nn.Module, found: Sequence[Seat], *links: Any) -> rt.Plan:
    binding = replace(HOST, seats=lambda _: list(found), links=lambda _: list(links))
    return rt.build(
        binding,
        model,
        lambda sample: model(**sample),
        observations=LLAMA.samples(2),
        scheme="fp8_static",
        rungs=("emulate",),
    )


def logits(model: nn.Module) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(**LLAMA.samples(1)[0]).logits
    return found


@pytest.mark.parametrize("order", [1, -1], ids=["block first", "child first"])
def test_a_block_owns_its_children(order: int) -> None:
    model = LLAMA.model(torch.bfloat16)
    before = logits(model)
    block = replace(seats(model)["ffn[0]"], form="block")
    plan = build(model, [block, inside(model)][::order])
    states = {record.name: record.state for record in plan.seats}
    assert states == {"ffn[0]": "bound", "down[0]": "kept"}
    assert "inside the block ffn[0]" in plan.explain()
    as_block = logits(model)
    plan.detach()
    assert torch.equal(logits(model), before)
    plan = build(model, [seats(model)["ffn[0]"]])
    assert torch.equal(logits(model), as_block)  # what a swap of the same module computes
    plan.detach()


def test_a_child_of_a_block_that_is_not_bound_is_its_own_seat() -> None:
    model = LLAMA.model(torch.bfloat16)
    refused = replace(
        seats(model)["ffn[0]"], form="block", expects=(rt.Expect("class", ("OtherMLP",)),)
    )
    plan = build(model, [refused, inside(model)])
    assert [record.state for record in plan.seats] == ["refused", "bound"]
    plan.detach()


def test_what_was_shown_about_links_is_told() -> None:
    model = LLAMA.model(torch.bfloat16)
    found = seats(model)
    linear = [found["o[0]"], inside(model)]
    plan = build(
        model,
        linear,
        rt.Chain("o[0]", "y", "down[0]", "x", "fp8_e4m3", ("same_storage", "exclusive_consumer")),
        rt.SeatGroup("both", ("o[0]", "down[0]"), "first_called", ("same_width", "same_rows")),
        rt.Chain("o[0]", "y", "gone[0]", "x", "fp8_e4m3", ("same_storage",)),
    )
    assert plan.calibration is not None
    told = plan.calibration.diagnostics
    assert "both: same_width shown" in told and "both: same_rows shown" in told
    shown, gone = plan.chains
    reason = f"same_storage is not shown: {MLP}.down_proj got another tensor"
    assert (shown.state, shown.reason) == ("apart", reason)
    assert (gone.state, gone.reason) == ("apart", "its consumer gone[0] is no seat of this model")
    chains = [(chain["state"], chain["reason"]) for chain in plan.receipt["plan"]["chains"]]
    assert chains == [(chain.state, chain.reason) for chain in plan.chains]
    assert f"apart; {reason}" in plan.explain() and f"apart; {gone.reason}" in plan.explain()
    assert not any("o[0].y" in line for line in told)  # a chain has its own line
    assert told[-1] in plan.receipt["plan"]["calibration"]["diagnostics"]
    plan.detach()


def test_a_route_is_looked_up_and_then_refused_by_name() -> None:
    """A scheme with a form for the structure meets a seat whose results have no place to go."""
    model = LLAMA.model(torch.bfloat16)
    routed = rt.Routed("rope", via="global", function="apply_rotary_pos_emb", args={"q": "q"})
    right = seats(model)["o[0]"]
    right = replace(right, form="route", path="model.layers.0.self_attn", expects=())
    plan = build(model, [replace(right, routed=routed)])
    (record,) = plan.seats
    assert record.state == "refused" and isinstance(record.refusal, Refusal)
    assert record.refusal.code == "route.form"
    wrong = replace(routed, function="apply_rotary")
    plan = build(model, [replace(right, routed=wrong)])
    assert plan.seats[0].refusal is not None and plan.seats[0].refusal.code == "host.route"
    assert "forward" not in model.model.layers[0].self_attn.__dict__
