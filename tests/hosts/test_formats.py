"""Every scheme's formats on a tiny model of transformers' own classes: built, run, detached.

Built without gates: what a format costs random weights is no verdict. The gates are held to
real weights in `test_smollm2.py`, the figures in docs/formats.md.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from frtspec.runtime import Plan
from frtspec.runtime import build as build_host
from hosts import tiny
from hosts.test_attach import cosine, modules, outputs

LEAST = {
    "fp8_static": 0.99,
    "fp8_dynamic": 0.99,
    "int8_dynamic": 0.99,
    "nvfp4_awq": 0.95,
    "nvfp4_balance": 0.9,
    "nvfp4_dynamic": 0.9,
}
"""Scheme -> the least cosine of the model's logits on its emulation."""


def build(model: nn.Module, scheme: str, rungs: tuple[str, ...] = ("emulate",)) -> Plan:
    plan: Plan = tiny.LLAMA.generated().build(
        model,
        lambda sample: model(**sample),
        observations=tiny.LLAMA.samples(4),
        scheme=scheme,
        rungs=rungs,
    )
    return plan


@pytest.mark.parametrize("scheme", LEAST)
def test_a_scheme_binds_runs_and_gives_the_host_back(scheme: str) -> None:
    model = tiny.LLAMA.model(torch.float32)
    before, identities = outputs(tiny.LLAMA, model), modules(model)
    with build(model, scheme) as plan:
        bound = Counter(name.partition("[")[0] for name in plan.bound)
        assert bound["ffn"] or bound["qkv"] or bound["o"], plan.explain()
        emulated = outputs(tiny.LLAMA, model)
        told = plan.precision_spec
    assert LEAST[scheme] <= cosine(before, emulated) < 1
    assert all(map(torch.equal, outputs(tiny.LLAMA, model), before))
    assert modules(model) == identities
    with build(model, scheme, ("torch",)) as plan:
        assert plan.bound
        assert cosine(emulated, outputs(tiny.LLAMA, model)) > 0.98
    assert_told(scheme, told)


def assert_told(scheme: str, told: dict[str, Any]) -> None:
    """The receipt says which precision every pack and point runs at."""
    seats = [seat for seat in told.values() if seat["packs"]]
    wanted = scheme.partition("_")[0]
    assert seats
    for seat in seats:
        assert {pack["dtype"].partition("_")[0] for pack in seat["packs"].values()} == {wanted}
        points = [p for p in seat["points"].values() if p["method"] != "host"]
        if scheme.endswith("dynamic"):
            assert points and {p["method"] for p in points} == {"at each call"}
        if scheme == "nvfp4_balance":
            assert all(len(p["balance"]) > 16 and p["dtype"] == "nvfp4" for p in points)


def test_a_size_that_groups_do_not_divide_is_refused_by_name() -> None:
    """32 channels are no whole group of 64: the seat says so, and which pack wants it."""
    model = tiny.LLAMA.model(torch.float32)
    plan = build(model, "w4a16_int4_decode")
    refusals = {r.name: r.refusal for r in plan.seats if r.code == "impl.dims"}
    plan.detach()
    assert refusals, plan.explain()
    what = next(iter(refusals.values())).what
    assert "% 64 == 0 (pack " in what and "per group 64)" in what


def test_route_params_reach_the_packs() -> None:
    """Without balance (alpha 0) every factor is 1."""
    model = tiny.LLAMA.model(torch.float32)
    host = tiny.LLAMA.generated().HOST
    scheme = host.schemes["nvfp4_awq"]
    routes = tuple(replace(r, params={**r.params, "alpha": 0.0}) for r in scheme.routes if r.params)
    flat = replace(host, schemes={"flat": replace(scheme, routes=routes)})
    plan = build_host(
        flat,
        model,
        lambda sample: model(**sample),
        observations=tiny.LLAMA.samples(2),
        scheme="flat",
        rungs=("emulate",),
    )
    impls = [record.bound.impl for record in plan.seats if record.bound is not None]
    plan.detach()
    assert impls
    for impl in impls:
        factors: Tensor = impl.in_b
        assert torch.equal(factors, torch.ones_like(factors))
