"""Rules judged on seats: on modules as they stand, on what calls show, and by attach."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
import torch
from flashrt_gen.structures import (
    adaln_producer_v1,
    attention_core_v1,
    cadence_static_v1,
    gated_delta_core_v1,
    linear_proj_v1,
    norm_fused_v1,
    patch_projection_v1,
    qk_norm_rope_v1,
)
from torch import Tensor, nn

from frtspec import runtime as rt
from frtspec.dims import at_least, dims, measured
from frtspec.runtime.eligibility import qualification
from frtspec.runtime.eligibility.qualification import Found, Ruling, judge
from frtspec.runtime.eligibility.rules import qualify, require
from frtspec.runtime.observation import measure
from frtspec.runtime.observation.observe import Observation, observe
from frtspec.runtime.spec import Boundary, InputOf, OutputOf, Seat, StructureSpec, Weight
from tests.runtime import hosts_small as small


def seat_of(spec: StructureSpec, path: str, **given: Any) -> Seat:
    found = {
        "variants": {axis: values[0] for axis, values in spec.variants.items()},
        "params": {},
        "dims": {},
        "slots": {},
        "points": {},
        **given,
    }
    return Seat(spec.name, spec, None, path, "swap", **found)


def told(rulings: list[Ruling], outcome: str) -> list[str]:
    return [r.told for r in rulings if r.outcome == outcome]


# ---------------------------------------------------------------- judging


def test_a_rule_counts_for_its_form_and_its_variants() -> None:
    spec = linear_proj_v1.SPEC
    sizes = Found({"M": 8, "K": 1024, "N": 1024})
    without = judge(spec, {"bias": "add"}, sizes)
    assert [r.rule for r in without] == ["K*N >= 1048576"]
    added, plain = (judge(spec, {"bias": bias}, sizes, ("fp8_static",)) for bias in ("add", "none"))
    assert told(added, "broken") == [
        "for fp8_static when bias is add: K*M*N >= 200000000 does not hold: K*M*N = 8388608"
    ]
    assert told(plain, "broken") == [
        "for fp8_static when bias is none: 20000000 <= K*M*N <= 1000000000 "
        + "does not hold: K*M*N = 8388608"
    ]
    assert told(judge(spec, {"bias": "none"}, sizes, ("fp8_wire",)), "broken") == []


@pytest.mark.parametrize(("rows", "outcome"), [(19, "broken"), (20, "holds"), (954, "broken")])
def test_a_band_of_work_ends_where_it_says(rows: int, outcome: str) -> None:
    found = Found({"M": rows, "K": 1024, "N": 1024})
    rulings = judge(linear_proj_v1.SPEC, {"bias": "none"}, found, ("fp8_static",))
    assert [r.outcome for r in rulings if r.form] == [outcome]


def test_a_rule_without_an_answer_says_what_is_missing() -> None:
    (ruling,) = judge(linear_proj_v1.SPEC, {"bias": "none"}, Found({"K": 8}))
    assert ruling.outcome == "not_measured" and ruling.found == "N is not determined"


def test_what_is_required_and_not_shown_refuses() -> None:
    seat = seat_of(cadence_static_v1.SPEC, "part")
    open_ = judge(seat.structure, {}, Found(missing={"calls": "the host has not run"}))
    qualification.enforce(seat, open_, pending=True)
    with pytest.raises(rt.Refusal, match=r"requires drift\(held\) <= 0.001 is not decided"):
        qualification.enforce(seat, open_)
    shown = judge(seat.structure, {}, Found(facts={"drift(held)": 0.0, "calls": 1}))
    with pytest.raises(rt.Refusal, match="requires calls >= 2 does not hold: calls = 1"):
        qualification.enforce(seat, shown)


# ---------------------------------------------------------------- on the module


class Patches(nn.Module):
    def __init__(self, proj: nn.Module) -> None:
        super().__init__()
        self.embed = nn.ModuleDict({"proj": proj})


def patch_rules(proj: nn.Module) -> list[Ruling]:
    weight = Weight("embed.proj.weight", "out_in", "flat")
    seat = seat_of(patch_projection_v1.SPEC, "embed", slots={"w": weight})
    return judge(seat.structure, seat.variants, measure.at_rest(Patches(proj), seat))


def test_a_convolution_over_whole_patches_is_a_projection() -> None:
    rulings = patch_rules(nn.Conv3d(3, 8, (2, 4, 4), stride=(2, 4, 4)))
    assert {r.outcome for r in rulings} == {"holds"} and len(rulings) == 5


@pytest.mark.parametrize(
    ("conv", "broken"),
    [
        (
            nn.Conv3d(3, 8, 4, stride=2),
            "kernel(w) is stride does not hold: kernel(w) = overlapping",
        ),
        (nn.Conv3d(3, 8, 2, stride=3), "kernel(w) is stride does not hold: kernel(w) = apart"),
        (nn.Conv3d(3, 8, 4, stride=4, padding=1), "padding(w) == 0 does not hold: padding(w) = 1"),
        (
            nn.Conv3d(3, 8, 1, stride=1, padding="same", dilation=2),
            "dilation(w) == 1 does not hold: dilation(w) = 2",
        ),
        (nn.Conv3d(4, 8, 4, stride=4, groups=2), "groups(w) == 1 does not hold: groups(w) = 2"),
        (nn.Conv2d(3, 8, 4, stride=4), "conv_rank(w) == 3 does not hold: conv_rank(w) = 2"),
    ],
    ids=["overlapping", "apart", "padded", "dilated", "grouped", "flat"],
)
def test_any_other_convolution_is_refused_by_the_rule(conv: nn.Module, broken: str) -> None:
    assert told(patch_rules(conv), "broken") == [broken]


def test_a_linear_slides_over_nothing() -> None:
    assert {r.outcome for r in patch_rules(nn.Linear(8, 8))} == {"not_applicable"}


def test_another_module_says_what_it_is() -> None:
    for module in (nn.ConvTranspose3d(3, 8, 4, stride=4), nn.LayerNorm(8)):
        rulings = patch_rules(module)
        assert {r.outcome for r in rulings} == {"not_measured"}
        assert {r.found for r in rulings} == {f"w belongs to a {type(module).__name__}"}


def test_a_state_is_explicit_where_the_host_hands_it_over_and_back() -> None:
    places = {"state": InputOf("core", "state")}, {"final_state": OutputOf("core", 1)}
    for inputs, outputs, kept in (
        (*places, "explicit"),
        (places[0], {}, "hidden"),
        ({}, places[1], "hidden"),
    ):
        boundary = Boundary("core", inputs=inputs, outputs=outputs)
        seat = seat_of(gated_delta_core_v1.SPEC, "core", boundary=boundary)
        found = measure.at_rest(nn.ModuleDict({"core": nn.Identity()}), seat)
        assert found.facts["kept(state)"] == kept


def test_children_that_a_block_does_not_name_are_counted() -> None:
    (rule,) = (require(measured("other_children", None, "==", 0)),)
    spec = dataclasses.replace(linear_proj_v1.SPEC, rules=(rule,))
    block = nn.ModuleDict(
        {
            "norm": nn.LayerNorm(4),
            "mlp": nn.Linear(4, 4),
            "drop": nn.Dropout(),
            "extra": nn.Linear(4, 4),
        }
    )
    slots = {"w": Weight("block.mlp.weight", "out_in"), "b": Weight("block.norm.bias")}
    seat = seat_of(spec, "block", slots=slots)
    found = measure.at_rest(nn.ModuleDict({"block": block}), seat)
    assert found.facts == {"other_children": 1}


# ---------------------------------------------------------------- over calls


class Loop(nn.Module):
    """Calls one part of it several times in a run, each time with what a list says."""

    def __init__(self, part: nn.Module) -> None:
        super().__init__()
        self.part = part

    def forward(self, calls: list[dict[str, Tensor]]) -> Tensor:
        return torch.stack([self.part(**call).sum() for call in calls])


class Styled(nn.Module):
    def forward(self, x: Tensor, cond: Tensor) -> Tensor:
        return x * cond.mean()


class Attention(nn.Module):
    def forward(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None) -> Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)


def watched(
    part: nn.Module, seat: Seat, *runs: list[dict[str, Tensor]]
) -> tuple[Loop, Observation]:
    host = Loop(part).eval()
    return host, observe(host, [seat], {}, [lambda run=run: host(run) for run in runs])


def rulings_over(
    part: nn.Module, seat: Seat, *runs: list[dict[str, Tensor]], forms: tuple[str, ...] = ()
) -> list[Ruling]:
    host, seen = watched(part, seat, *runs)
    assert seen.refusals == {}
    return judge(seat.structure, seat.variants, measure.after_calls(host, seat, seen), forms)


STYLED = seat_of(
    adaln_producer_v1.SPEC,
    "part",
    points={"cond_in": InputOf("part", "cond"), "x_in": InputOf("part", "x")},
)


def loop_of(conds: list[Tensor]) -> list[dict[str, Tensor]]:
    return [{"x": torch.ones(2, 4), "cond": cond} for cond in conds]


def test_a_table_of_steps_needs_few_steps_far_apart() -> None:
    table = torch.randn(80, 16, generator=torch.Generator().manual_seed(1))
    few = rulings_over(Styled(), STYLED, loop_of([*table[:10], *table[:10]]), forms=("step_table",))
    assert [r.outcome for r in few] == ["holds", "holds"]
    assert few[0].found == "steps(cond_in) = 10"
    many = rulings_over(Styled(), STYLED, loop_of(list(table)), forms=("step_table",))
    assert told(many, "broken") == [
        "for step_table: steps(cond_in) <= 64 does not hold: steps(cond_in) = 80"
    ]
    near = loop_of([table[0], table[0] * (1 + 1e-5)])
    close = rulings_over(Styled(), STYLED, near, forms=("step_table",))
    assert [r.outcome for r in close] == ["holds", "broken"]


def test_of_several_runs_the_worst_counts() -> None:
    table = torch.randn(6, 16)
    rulings = rulings_over(
        Styled(), STYLED, loop_of([table[0]] * 3), loop_of(list(table)), forms=("step_table",)
    )
    assert rulings[0].found == "steps(cond_in) = 6"


def test_one_value_needs_no_fingerprint() -> None:
    rulings = rulings_over(Styled(), STYLED, loop_of([torch.ones(4)] * 3), forms=("step_table",))
    assert [r.outcome for r in rulings] == ["holds", "not_applicable"]


def test_content_is_no_statistic_and_needs_no_place() -> None:
    """A point that nothing asks about here may be missing; a rule then says so."""
    bare = dataclasses.replace(STYLED, points={})
    rulings = rulings_over(Styled(), bare, loop_of([torch.ones(4)] * 3), forms=("step_table",))
    assert {r.outcome for r in rulings} == {"not_measured"}
    assert "the binding does not say where it lies" in rulings[0].found


def test_what_a_buffer_holds_must_not_move_within_the_loop() -> None:
    seat = seat_of(cadence_static_v1.SPEC, "part", points={"held": OutputOf("part")})
    x = torch.randn(3, 5)
    still = [{"input": x}] * 3
    assert {r.outcome for r in rulings_over(nn.Identity(), seat, still)} == {"holds"}
    moved = rulings_over(nn.Identity(), seat, [{"input": x}, {"input": x * 1.01}])
    assert [r.outcome for r in moved] == ["broken", "holds"]
    once = rulings_over(nn.Identity(), seat, [{"input": x}])
    assert told(once, "broken") == ["calls >= 2 does not hold: calls = 1"]


def test_keys_are_packed_where_one_run_is_blocked_and_the_prefix_stands() -> None:
    spec = attention_core_v1.SPEC
    seat = seat_of(
        spec,
        "part",
        dims={"B": 1, "H": 2, "Hkv": 2, "D": 64},
        points={"k": InputOf("part", "k"), "mask": InputOf("part", "mask")},
        boundary=Boundary("part", inputs={"q": InputOf("part", "q")}),
    )
    make = torch.Generator().manual_seed(0)
    q, k = torch.randn(1, 2, 4, 64, generator=make), torch.randn(1, 2, 12, 64, generator=make)
    mask = torch.zeros(1, 1, 4, 12)
    mask[..., 3:6] = -torch.inf
    after = k.clone()
    after[..., 8:, :] += 1
    calls = [{"q": q, "k": item, "v": k, "mask": mask} for item in (k, after)]
    rulings = rulings_over(Attention(), seat, calls, forms=("packed_kv",))
    assert {r.outcome for r in rulings} == {"holds"} and len(rulings) == 4
    after[..., 7:, :] += 1
    rulings = rulings_over(Attention(), seat, calls, forms=("packed_kv",))
    assert [r.rule for r in rulings if r.outcome == "broken"] == [
        "for packed_kv: prefix_drift(k) <= 0.001"
    ]
    odd = dataclasses.replace(seat, dims={**seat.dims, "D": 80})
    missed = qualification.missed(rulings_over(Attention(), odd, calls))
    assert missed == ["D in (64, 96, 128, 256) does not hold: D = 80"]


def test_the_dtype_that_arrives() -> None:
    seat = seat_of(
        norm_fused_v1.SPEC, "part", boundary=Boundary("part", inputs={"x": InputOf("part")})
    )
    wide, narrow = ([{"input": torch.ones(2, 4, dtype=d)}] for d in (torch.float32, torch.bfloat16))
    assert [r.outcome for r in rulings_over(nn.Identity(), seat, wide, forms=("bf16",))] == [
        "holds"
    ]
    rulings = rulings_over(nn.Identity(), seat, wide, narrow, forms=("bf16",))
    assert told(rulings, "broken") == [
        "for bf16: dtype(x) is f32 does not hold: dtype(x) = bf16 and f32"
    ]
    assert rulings_over(nn.Identity(), seat, narrow) == []


class Turned(nn.Module):
    def forward(self, q: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        return q


def test_a_position_table_has_a_row_for_each_token() -> None:
    places = {name: InputOf("part", name) for name in ("q", "cos", "sin")}
    seat = seat_of(qk_norm_rope_v1.SPEC, "part", points=places)
    q, table = torch.randn(2, 5, 3, 8), torch.randn(2, 5, 4)
    rulings = rulings_over(Turned(), seat, [{"q": q, "cos": table, "sin": table[:1]}])
    found = {r.rule: r.outcome for r in rulings}
    assert found["table(cos) is per_token"] == "holds"
    assert found["table(sin) is per_token"] == "broken"


def test_whether_the_host_repeats_itself() -> None:
    seat = seat_of(gated_delta_core_v1.SPEC, "part")
    host, seen = watched(nn.Identity(), seat, [{"input": torch.ones(2)}])
    for exact, fact in ((True, "exact"), (False, "inexact")):
        assert measure.after_calls(host, seat, seen, exact=exact).facts["repeats(y)"] == fact
    assert "repeats(y)" in measure.after_calls(host, seat, seen).missing


# ---------------------------------------------------------------- attach


def attach(rules: tuple[rt.Rule, ...], dtype: torch.dtype = torch.float32) -> rt.Plan:
    def seats(model: nn.Module) -> list[Seat]:
        return [
            dataclasses.replace(s, structure=dataclasses.replace(s.structure, rules=rules))
            for s in small.tiny_seats(model)
        ]

    model = small.tiny_decoder().to(dtype)
    return rt.attach(
        dataclasses.replace(small.BINDING, seats=seats),
        model,
        model,
        scheme="fp8_static",
        rungs=("emulate",),
        structures=["decoder_ffn"],
        observations=small.token_batches(2),
        held_out=small.token_batches(2, seed=9),
    )


def reason(plan: rt.Plan) -> str:
    record = plan.seat("ffn[0]")
    return f"{record.state} {record.code}: {record.reason}"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (
            require(measured("dtype", "x_after_norm", "is", "bf16")),
            "requires dtype(x_after_norm) is bf16 does not hold: dtype(x_after_norm) = f32",
        ),
        (require(measured("calls", None, ">=", 2)), "requires calls >= 2 does not hold: calls = 1"),
        (
            require(measured("steps", "nowhere", "<=", 64)),
            "requires steps(nowhere) <= 64 is not decided: nothing was seen at nowhere",
        ),
        (
            require(at_least(dims("D")[0], 4096)),
            "requires D >= 4096 does not hold: D = ",
        ),
    ],
    ids=["dtype", "calls", "unplaced", "size"],
)
def test_attach_refuses_a_seat_by_the_rule(rule: rt.Rule, expected: str) -> None:
    told = reason(attach((rule,)))
    assert told.startswith("refused structure.requires: ") and expected in told


def test_attach_records_what_holds_and_what_does_not_pay() -> None:
    rules = (
        require(measured("dtype", "x_after_norm", "is", "f32", "bf16")),
        qualify(measured("calls", None, ">=", 100)),
        require(measured("calls", None, ">=", 100), form="another"),
    )
    plan = attach(rules)
    record = plan.seat("ffn[0]")
    assert record.state == "bound"
    assert [r.outcome for r in record.rules] == ["holds", "broken"]
    row = next(s for s in plan.receipt["plan"]["seats"] if s["name"] == "ffn[0]")
    assert row["rules"][1] == {
        "rule": "calls >= 100",
        "kind": "qualify",
        "form": None,
        "outcome": "broken",
        "found": "calls = 1",
    }


def test_a_rule_of_the_impl_counts_when_that_impl_is_used() -> None:
    rule = require(measured("calls", None, ">=", 100), form="fp8_static")
    assert "for fp8_static: calls >= 100 does not hold" in reason(attach((rule,)))
