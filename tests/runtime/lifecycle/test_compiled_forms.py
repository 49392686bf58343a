"""Every form that binds on a CPU compiles whole, gives what it gives in eager, and once."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

import flashrt_gen.schemes
import pytest
import torch
from torch import Tensor, nn

from frtspec.runtime import Plan, Refusal
from frtspec.runtime.seats.seatmodule import SeatModule
from tests.hosts.tiny import LLAMA, QWEN3_5, QWEN3_MOE, SIGLIP, Family

SCHEMES = [name for _, name, _ in pkgutil.iter_modules(flashrt_gen.schemes.__path__)]
SAMPLED = [
    (LLAMA, "fp8_static", "torch"),
    (LLAMA, "w8a16_decode", "torch"),
    (SIGLIP, "nvfp4_balance", "emulate"),
]
ALL = [
    (family, scheme, rung)
    for family in (LLAMA, SIGLIP, QWEN3_MOE, QWEN3_5)
    for scheme in SCHEMES
    for rung in ("torch", "emulate")
]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def build(family: Family, scheme: str, rung: str) -> tuple[Plan, nn.Module]:
    model = family.model(torch.bfloat16)
    samples = family.samples(1)
    for sample in samples:
        sample |= {k: v.bfloat16() for k, v in sample.items() if v.is_floating_point()}
        if "input_ids" in sample and "decode" in scheme:
            sample["input_ids"] = sample["input_ids"][:, :4]
    plan = family.generated().build(
        model, lambda sample: model(**sample), observations=samples, scheme=scheme, rungs=(rung,)
    )
    return plan, model


def one_of_each(model: nn.Module) -> dict[str, SeatModule]:
    """The first seat of each form."""
    found: dict[str, SeatModule] = {}
    for module in model.modules():
        if isinstance(module, SeatModule):
            spec = module._frt.forms.forms[0].impl.SPEC
            found.setdefault(f"{spec.structure} {spec.name} {type(module).__name__}", module)
    return found


def inputs(seat: SeatModule, rows: int) -> tuple[Tensor, ...]:
    generator = torch.Generator().manual_seed(rows)
    contract = seat._frt.guard.contract
    dtype = next(iter(contract.out_dtypes)).dtype
    shapes = [(1, rows, width) for width in contract.widths]
    return tuple(torch.randn(s, generator=generator).to(dtype) for s in shapes)


def check(seat: SeatModule, backend: str, name: str) -> None:
    """One graph for a shape, and what the eager call gives."""
    counts = torch._dynamo.utils.counters
    counts.clear()
    call = torch.compile(seat, backend=backend, fullgraph=True)
    given = inputs(seat, 2)
    with torch.no_grad():
        wanted = seat(*given)
        for _ in range(3):
            found = call(*given)
        again = call(*[x.clone() for x in given])
    assert counts["stats"]["unique_graphs"] == 1, name
    for y in (found, again):
        torch.testing.assert_close(y, wanted, rtol=2e-2, atol=2e-2 * float(wanted.abs().max()))


def compiles(family: Family, scheme: str, rung: str, backend: str) -> set[str]:
    try:
        plan, model = build(family, scheme, rung)
    except Refusal as refusal:
        pytest.skip(f"{scheme} is not for {family.name}: {refusal.code}")
    seats = one_of_each(model)
    for name, seat in seats.items():
        torch._dynamo.reset()
        check(seat, backend, f"{name} on {rung}")
    plan.detach()
    return set(seats)


def named(case: Any) -> str:
    return case.name if isinstance(case, Family) else str(case)


@pytest.mark.parametrize(("family", "scheme", "rung"), SAMPLED, ids=named)
def test_forms_compile_whole_and_once(family: Family, scheme: str, rung: str) -> None:
    assert compiles(family, scheme, rung, "aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize(("family", "scheme", "rung"), ALL, ids=named)
def test_every_form_compiles_whole_and_once(family: Family, scheme: str, rung: str) -> None:
    compiles(family, scheme, rung, "aot_eager")


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["fp8_static", "int8_dynamic", "w8a16_decode"])
def test_some_forms_compile_with_inductor(scheme: str) -> None:
    assert compiles(LLAMA, scheme, "torch", "inductor")


def test_every_scheme_is_looked_at() -> None:
    assert {scheme for _, scheme, _ in SAMPLED} < set(SCHEMES)
    for name in SCHEMES:
        assert importlib.import_module(f"flashrt_gen.schemes.{name}")
