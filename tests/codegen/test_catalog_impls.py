"""Every impl of the catalog, by what its format can hold: emulation against the reference,
library rung against the emulation.

Random activations have no outliers and random weights no structure, so four-bit formats
miss the bounds of the structures here; their specs state what they hold instead, and a change
that lowers it changes the arithmetic.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from flashrt_gen import gates, impls
from torch import Tensor

from frtspec.runtime import Bound, BoundImpl, harness, numerics
from frtspec.runtime.gating.gates import chained, parity_bound
from frtspec.runtime.gating.metrics import row_distance, row_errors

SMALLER = {"moe_experts": {"E": 6, "K": 2}, "gated_delta_core": {"H": 4}}
"""Sizes that say as much in less time."""

CASES = 3

WIDE = {"moe_experts": 2.0**-3}
"""Library rungs further from their emulation than a host's would be: random experts give
hidden values so small that they sit at the format's least scale."""


def catalog() -> Iterator[type[BoundImpl]]:
    for entry in pkgutil.iter_modules(impls.__path__):
        module = importlib.import_module(f"{impls.__name__}.{entry.name}")
        yield from (
            found
            for found in vars(module).values()
            if inspect.isclass(found) and issubclass(found, BoundImpl) and found is not BoundImpl
        )


def rungs_of(impl: type[BoundImpl]) -> list[str]:
    every = [*impl.SPEC.rungs, *(r for band in impl.SPEC.bands for r in band.rungs)]
    return list(dict.fromkeys(rung.kind for rung in every))


PAIRS = [(i, r) for i in catalog() for r in ("emulate", "torch") if r in rungs_of(i)]


def name_of(value: object) -> str:
    if not inspect.isclass(value):
        return str(value)
    spec = value.SPEC  # type: ignore[attr-defined]
    return f"{spec.structure}_v{spec.structure_version}-{spec.name}"


def cases_of(impl: type[BoundImpl], module: Any) -> list[harness.Case]:
    """Cases that the impl serves, some of them, at sizes that its groups divide."""
    spec = impl.SPEC
    served = [
        case
        for case in module.cases()
        if all(case.variants[axis] in allowed for axis, allowed in spec.only.items())
    ]
    step = max(1, len(served) // CASES)
    found = []
    for case in served[::step]:
        sizes = {**case.sizes, **SMALLER.get(spec.structure, {})}
        for need in spec.needs:
            (symbol,) = need.rule.symbols()
            if not need.rule.check(sizes):
                sizes[symbol] = int(need.rule.args[0].value({}))
        found.append(replace(case, sizes=sizes))
    return found


def judged(impl: type[BoundImpl], rung: str, device: str = "cpu") -> list[harness.Result]:
    module = importlib.import_module(
        f"{gates.__name__}.{impl.SPEC.structure}_v{impl.SPEC.structure_version}"
    )
    cases = cases_of(impl, module)
    assert cases
    bounds = module.SPEC.boundary_gate
    inner = getattr(module, "INNER", ({},))
    return harness.run(
        module.SPEC, cases, [impl], bounds=bounds, inner=inner, rung=rung, device=device
    )


@pytest.mark.parametrize(("impl", "rung"), PAIRS, ids=name_of)
def test_an_impl_does_what_its_structure_says(impl: type[BoundImpl], rung: str) -> None:
    hold(impl, rung, "cpu")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="library products of a CUDA device")
@pytest.mark.parametrize("impl", [i for i, rung in PAIRS if rung == "torch"], ids=name_of)
def test_the_library_rung_on_a_gpu(impl: type[BoundImpl]) -> None:
    if "fp8" in impl.SPEC.name and torch.cuda.get_device_capability() < (8, 9):
        pytest.skip("FP8 products need compute capability 8.9")
    hold(impl, "torch", "cuda")


def hold(impl: type[BoundImpl], rung: str, device: str) -> None:
    """An impl against its structure, and its library rung against its emulation."""
    apart: list[float] = []
    tried = against_emulation(impl, apart) if rung == "torch" else impl
    results = judged(tried, rung, device)
    assert all(result.verdict == "pass" for result in results), [str(r) for r in results]
    if rung == "torch":
        allowed = parity_bound(256, chained=chained(impl.SPEC))
        if chained(impl.SPEC):
            allowed = WIDE.get(impl.SPEC.structure, allowed)
        assert apart and max(apart) <= allowed


def against_emulation(impl: type[BoundImpl], apart: list[float]) -> type[BoundImpl]:
    """The impl with its library rung held against its emulation at each call."""

    @functools.wraps(impl.run_torch)  # type: ignore[attr-defined]
    def run_torch(self: Any, *inputs: Tensor, **named: Tensor) -> Any:
        found, wanted = (run(self, *inputs, **named) for run in (impl.run_torch, impl.run_emulate))  # type: ignore[attr-defined]
        pairs = [(found, wanted)] if isinstance(found, Tensor) else zip(found, wanted, strict=True)
        for ours, theirs in pairs:
            assert (ours is None) == (theirs is None)
            if ours is None:  # a result of other variants
                continue
            assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
            flat = [t.reshape(-1, t.shape[-1]) for t in (ours, theirs)]
            apart.append(float(row_distance(row_errors(*flat))))
        return found

    return type(impl.__name__, (impl,), {"run_torch": run_torch})


def test_only_bounds_with_a_reason_are_looser() -> None:
    """Every impl that the structures' own bounds would fail says so in its spec."""
    looser = {name_of(impl) for impl in catalog() if impl.SPEC.gates}
    four = {
        name_of(impl)
        for impl in catalog()
        if {form for form, _ in impl.SPEC.packs.values()} & {"nvfp4", "int4"}
    }
    assert looser == four


@pytest.mark.parametrize("kind", ["boundary", "seam"])
def test_the_harness_holds_an_impl_to_its_own_gates(kind: str) -> None:
    impl = next(i for i in catalog() if set(i.SPEC.gates) == {"boundary", "seam"})
    strict = {**impl.SPEC.gates, kind: (Bound("cosine", ">=", 0.99999),)}
    spec = replace(impl.SPEC, gates=strict)
    harder = type(impl.__name__, (impl,), {"SPEC": spec})
    assert {result.verdict for result in judged(harder, "emulate")} == {"fail"}


SIBLINGS = [impl for impl in catalog() if impl.SPEC.structure == "qkv_pack"]


@pytest.mark.parametrize("rung", ["emulate", "torch"])
@pytest.mark.parametrize("impl", SIBLINGS, ids=name_of)
def test_a_sibling_alone_computes_its_part(impl: type[BoundImpl], rung: str) -> None:
    """A member's view of the joint pack holds its own rows, of codes and of scales."""
    generator = torch.Generator().manual_seed(0)
    x, *w = (torch.randn(rows, 64, generator=generator) for rows in (5, 32, 16, 48))
    given: dict[str, Any] = {"w": [each.T for each in w], "bias": "none"}
    for name, scale in impl.SPEC.scales.items():
        given[name] = numerics.calibrated(scale.kind, x.abs().amax(0))
    bound = impl(**given).on(next(r for r in impl.SPEC.rungs if r.kind == rung))
    whole = bound.run(x)
    for position in range(3):
        (alone,) = bound.member(position).run(x)
        assert torch.equal(alone, whole[position])
