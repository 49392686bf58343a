"""Every scheme of the catalog: one decision for every seat of every binding, and what really
runs on tiny models, by the emulation of each impl."""

from __future__ import annotations

import dataclasses
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import torch
from flashrt_gen import schemes
from torch import Tensor, nn

from frtspec import runtime as rt
from frtspec.diag.source import SourceFile
from frtspec.ir.decl import Program
from frtspec.runtime import Plan, receipt
from frtspec.runtime.spec import Route, SchemeSpec
from frtspec.sema import analyse
from frtspec.syntax.parse import parse
from hosts import tiny
from hosts.tiny import Family

ROOT = Path(__file__).parents[2]
NAMES = tuple(schemes.ALL)

FFN_POINTS = ("x_after_norm", "act_after_mul")


@cache
def catalog() -> Program:
    sources = [
        SourceFile.from_text(str(path.relative_to(ROOT)), path.read_text("utf-8"))
        for path in sorted((ROOT / "specs").rglob("*.frt"))
    ]
    return analyse([(source, parse(source).file) for source in sources]).program


def _served(route: Route) -> str:
    return "" if route.impl is None else repr(sorted(route.impl.SPEC.only.items()))


# ---------------------------------------------------------------- every seat, every scheme


@pytest.mark.parametrize("name", NAMES)
def test_every_seat_of_every_binding_gets_one_decision_with_a_reason(name: str) -> None:
    scheme: SchemeSpec = schemes.ALL[name]
    keys = [(r.structure, r.version, r.seam, _served(r)) for r in scheme.routes]
    assert len(keys) == len(set(keys)), "two routes for one structure and the same variants"
    seats = [seat for b in catalog().bindings.values() for g in b.groups for seat in g.seats]
    assert len(seats) > 100
    for seat in seats:
        structure, version = seat.structure
        route = scheme.route(structure, seat.seam, version)
        assert (route.impl is None) == bool(route.keep), seat.name
        if route.impl is not None:
            spec = route.impl.SPEC
            assert (spec.structure, spec.structure_version, spec.seam) == (
                structure,
                version,
                seat.seam,
            )
            assert set(route.params) == set(spec.params)


@pytest.mark.parametrize("name", NAMES)
def test_every_impl_that_a_scheme_routes_to_can_be_emulated(name: str) -> None:
    for route in schemes.ALL[name].routes:
        if route.impl is not None:
            spec = route.impl.SPEC
            rungs = [*spec.rungs, *(rung for band in spec.bands for rung in band.rungs)]
            assert "emulate" in {rung.kind for rung in rungs}, spec.name


def test_auto_is_a_table_of_schemes_that_are_there() -> None:
    assert schemes.AUTO[-1][0] is None
    assert {name for _, name in schemes.AUTO} <= set(schemes.ALL)
    bounds = [least for least, _ in schemes.AUTO if least is not None]
    assert bounds == sorted(bounds, reverse=True)


# ---------------------------------------------------------------- on hosts


def steps(family: Family) -> list[dict[str, Tensor]]:
    """Prompts, and for hosts of tokens a decode step of one row behind each."""
    found = []
    for sample in family.samples(2):
        found.append(sample)
        if set(sample) == {"input_ids"}:
            found.append({"input_ids": sample["input_ids"][:1, :1]})
    return found


WIDE = dataclasses.replace(
    tiny.LLAMA, build=tiny._decoder("Llama", hidden_size=128, intermediate_size=256)
)
"""Wide enough for groups of 128."""


def built(family: Family, name: str, model: nn.Module | None = None, **options: Any) -> Plan:
    model = family.model(torch.float32) if model is None else model
    plan: Plan = family.generated().build(
        model,
        lambda sample: model(**sample),
        observations=steps(family),
        scheme=name,
        rungs=("emulate",),
        **options,
    )
    return plan


FORMATS = {
    "fp8_static": {"ffn": ("fp8_e4m3", "static", "amax per tensor")},
    "fp8_static_keep_outliers": {"ffn": ("fp8_e4m3", "static", "amax per tensor")},
    "fp8_dynamic": {"ffn": ("fp8_e4m3", "at each call", None)},
    "int8_dynamic": {"o": ("int8", "at each call", None)},
    "w8a16_decode": {"ffn": ("int8", "rounded", None), "o": ("int8", "rounded", None)},
    "w4a16_decode": {"ffn": ("nvfp4", "rounded", None)},
    "w4a16_int4_decode": {"ffn": ("int4", "rounded", None), "o": ("int4", "rounded", None)},
    "w4a4_decode": {"o": ("int8", "rounded", None)},
    "nvfp4_dynamic": {"o": ("nvfp4", "at each call", None)},
    "nvfp4_awq": {"ffn": ("nvfp4", "rounded", "amax per channel")},
    "nvfp4_balance": {
        "ffn": ("nvfp4", "at each call", "amax per channel"),
        "o": ("nvfp4", "at each call", "amax per channel"),
    },
    "nvfp4_balance_wire": {"ffn": ("nvfp4", "at each call", "amax per channel")},
    "bf16_structural": {},
    "none": {},
}
"""Scheme -> seat -> (format of its packs, how its input is treated, what was measured)."""

BANDS = {
    ("w8a16_decode", "ffn"): "1..=8",
    ("w8a16_decode", "o"): "1..=4",
    ("w4a16_decode", "ffn"): "1..=3",
    ("w4a16_int4_decode", "ffn"): "1..=8",
    ("w4a16_int4_decode", "o"): "1..=8",
    ("w4a4_decode", "o"): "1..=4",
}

STRUCTURES = ("decoder_ffn", "linear_proj", "qkv_pack", "norm_fused")


def test_nothing_is_left_out_of_the_table() -> None:
    assert set(FORMATS) == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_llama_under_every_scheme_runs_what_its_record_says(name: str) -> None:
    plan = built(WIDE, name, structures=STRUCTURES)
    assert receipt.verify(plan.receipt)
    assert not plan.names("failed") and not plan.names("refused"), plan.explain()
    for record in plan.seats:
        assert record.decision is not None and record.decision.reason
        asked = record.seat.structure.name in STRUCTURES
        used = asked and record.decision.outcome == "use"
        assert used == (record.state == "bound"), record.name
    for seat, (packed, method, statistic) in FORMATS[name].items():
        precision = plan.precision_spec[f"{seat}[0]"]
        assert {pack["dtype"] for pack in precision["packs"].values()} == {packed}
        point = precision["points"][FFN_POINTS[0] if seat == "ffn" else "x_in"]
        assert point["method"] == method
        assert [m["statistic"] for m in point["measured"]] == ([statistic] if statistic else [])
        assert all(m["samples"] == 4 and m["percentile"] == 99.9 for m in point["measured"])
        balanced = "amax per channel" == statistic
        assert ("balance" in point) == balanced
        band = BANDS.get((name, seat))
        assert precision["rows"] == ([] if band is None else [band])
    quantised = {n for n, p in plan.precision_spec.items() if p["packs"]}
    assert {n.partition("[")[0] for n in quantised} >= set(FORMATS[name])
    if not FORMATS[name]:
        assert not quantised


@pytest.mark.parametrize("name", ["w8a16_decode", "w4a16_int4_decode", "w4a16_decode"])
def test_decode_schemes_leave_prefill_to_the_host(name: str) -> None:
    model = WIDE.model(torch.float32)
    prompt = WIDE.samples(1)[0]
    with torch.no_grad():
        before = [model(**prompt).logits, model(input_ids=prompt["input_ids"][:1, :1]).logits]
    plan = WIDE.generated().build(model, lambda: model(**prompt), scheme=name, rungs=("emulate",))
    with torch.no_grad():
        after = [model(**prompt).logits, model(input_ids=prompt["input_ids"][:1, :1]).logits]
    ffn = [row for seat, row in plan.ledger().items() if seat.startswith("ffn[")]
    assert ffn and all((row.calls, row.otherwise_host) == (2, 1) for row in ffn)
    assert all(row.fallbacks == 0 for row in plan.ledger().values())
    assert not torch.equal(after[1], before[1])
    cosine = torch.nn.functional.cosine_similarity(after[1].flatten(), before[1].flatten(), dim=0)
    assert float(cosine) > (0.999 if name == "w8a16_decode" else 0.97)


@pytest.mark.parametrize("name", ["fp8_static", "nvfp4_balance", "nvfp4_balance_wire"])
def test_siglip_under_the_schemes_that_have_vision_forms(name: str) -> None:
    plan = built(tiny.SIGLIP, name)
    assert receipt.verify(plan.receipt)
    mlp = plan.precision_spec["mlp[0]"]["points"]
    assert plan.seat("mlp[0]").state == "bound", plan.explain()
    assert ("balance" in mlp["hidden_after_act"]) == (name == "nvfp4_balance")
    assert ("balance" in mlp["x_after_norm"]) == (name != "fp8_static")


def test_the_parameters_of_a_route_reach_the_seat_and_the_receipt() -> None:
    from flashrt_gen import llama

    plain = built(WIDE, "nvfp4_awq", structures=("decoder_ffn",))
    (seat,) = (s for s in plain.receipt["plan"]["seats"] if s["name"] == "ffn[0]")
    assert seat["decision"]["params"] == {"alpha": 0.5, "clamp_low": 0.25, "clamp_high": 4.0}

    (route,) = (r for r in schemes.ALL["nvfp4_awq"].routes if r.structure == "decoder_ffn")
    unmoved = dataclasses.replace(route, params={**route.params, "alpha": 0.0})
    scheme = dataclasses.replace(schemes.ALL["nvfp4_awq"], routes=(unmoved,))
    host = dataclasses.replace(llama.HOST, schemes={"nvfp4_awq": scheme})
    model = WIDE.model(torch.float32)
    plan = rt.build(
        host,
        model,
        lambda sample: model(**sample),
        observations=steps(WIDE),
        scheme="nvfp4_awq",
        rungs=("emulate",),
        structures=("decoder_ffn",),
    )
    balances = [
        p.precision_spec["ffn[0]"]["points"]["x_after_norm"]["balance"] for p in (plain, plan)
    ]
    assert len(set(balances[0])) > 1 and set(balances[1]) == {1.0}
    (seat,) = (s for s in plan.receipt["plan"]["seats"] if s["name"] == "ffn[0]")
    assert seat["decision"]["params"]["alpha"] == 0.0


def test_one_planted_outlier_stays_in_the_dtype_of_the_model() -> None:
    model = tiny.LLAMA.model(torch.float32)
    with torch.no_grad():
        model.model.layers[1].mlp.up_proj.weight *= 400
        model.model.layers[1].mlp.down_proj.weight /= 400
    plan = built(tiny.LLAMA, "fp8_static_keep_outliers", model, structures=STRUCTURES)
    assert {n for n, p in plan.precision_spec.items() if n.startswith("ffn") and p["packs"]} == {
        "ffn[0]"
    }
    decision = plan.seat("ffn[1]").decision
    assert decision.condition == "amax > 20 * median(amax)"
    (figure,) = decision.figures
    assert figure.left_value > figure.right_value
    assert f"amax {figure.left_value:.4g} at act_after_mul" in plan.explain()
    plan.detach()
    static = built(tiny.LLAMA, "fp8_static", model, structures=STRUCTURES)
    assert static.seat("ffn[1]").state == "bound"
