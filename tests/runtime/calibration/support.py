"""Calibrating the small host."""

from __future__ import annotations

import dataclasses

from frtspec import runtime as rt
from frtspec.runtime.spec import Stat
from tests.runtime import hosts_small as small

BATCHES = small.token_batches(4)
HELD = small.token_batches(2, seed=9)

EVERY = (
    Stat("amax", "tensor"),
    Stat("amax", "channel"),
    Stat("amax", "block", size=8),
    Stat("second_moment", "channel"),
    Stat("histogram", "tensor", bins=64),
)


def with_stats(*stats):
    """The small binding, whose scheme measures these at the input of every projection."""
    routes = tuple(
        dataclasses.replace(route, stats={"x": stats}) if "x" in route.stats else route
        for route in small.FP8_STATIC.routes
    )
    scheme = dataclasses.replace(small.FP8_STATIC, routes=routes)
    return dataclasses.replace(small.BINDING, schemes={"fp8_static": scheme, "none": small.NONE})


def build(model, observations=BATCHES, binding=small.BINDING, **options):
    options = {"scheme": "fp8_static", "rungs": ("emulate",), **options}
    return rt.build(binding, model, model, observations=observations, **options)


def attach(model, observations=BATCHES, binding=small.BINDING, **options):
    options = {
        "scheme": "fp8_static",
        "rungs": ("emulate",),
        "latency": "skip",
        "held_out": HELD,
        **options,
    }
    return rt.attach(binding, model, model, observations=observations, **options)


def scales(plan):
    """Every static scale that the bound seats really hold."""
    return {
        (name, point): spec.get("scale")
        for name, seat in plan.precision_spec.items()
        for point, spec in seat["points"].items()
    }
