"""The scan on every family that has a hand-written binding: it finds at least as much."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import torch
from torch import nn

from frtspec.diag.source import SourceFile
from frtspec.live.inmemory import bindings_of
from frtspec.live.scan import ScanResult, scan
from frtspec.live.verify import verify
from frtspec.runtime.spec import HostBinding, Seat
from frtspec.syntax.fmt import format_source
from tests.hosts import tiny
from tests.hosts.tiny import Family

FAMILIES = pytest.mark.parametrize("family", tiny.FAMILIES, ids=lambda family: family.name)

SCANNED_FORMS = ("swap", "siblings")
"""Seats that stand on modules. Routes, updates and blocks lie between modules or depend on
how often a caller runs what; no pattern describes them."""


@cache
def scanned(name: str) -> tuple[nn.Module, ScanResult]:
    family = next(family for family in tiny.FAMILIES if family.name == name)
    model = family.model()
    (sample,) = family.samples(1)
    return model, scan(model, lambda: model(**sample))


@cache
def compiled(name: str) -> HostBinding:
    """The draft, compiled from a file; raises with every finding of it."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "draft.frt")
        path.write_text(scanned(name)[1].binding)
        (binding,) = bindings_of(path).values()
    return binding


def wanted(family: Family, model: nn.Module) -> list[Seat]:
    """The seats of the hand-written binding that patterns can describe."""
    return [
        seat
        for seat in family.generated().HOST.seats(model)
        if seat.form in SCANNED_FORMS and seat.structure.discover
    ]


def key(seat: Seat) -> tuple[object, ...]:
    members = seat.siblings.members if seat.siblings else ()
    return seat.structure.name, seat.seam, seat.path, members


@FAMILIES
def test_it_finds_what_the_binding_names(family: Family) -> None:
    model, found = scanned(family.name)
    here = {key(seat.seat("s")): seat for seat in found.seats}
    missed = [key(seat) for seat in wanted(family, model) if key(seat) not in here]
    assert missed == [], found.explain()


@FAMILIES
def test_it_says_the_same_of_each(family: Family) -> None:
    """Weights, sizes, and the variants that the module shows."""
    model, found = scanned(family.name)
    here = {key(seat.seat("s")): seat.seat("s") for seat in found.seats}
    for seat in wanted(family, model):
        mine = here[key(seat)]
        if mine.structure.version != seat.structure.version:
            continue
        theirs = {slot: w for slot, w in seat.slots.items() if slot in mine.slots}
        assert dict(mine.slots) == theirs, seat.name
        assert {d: v for d, v in mine.dims.items() if d in seat.dims} == dict(seat.dims), seat.name
        inner = seat.structure.seams[seat.seam].variants if seat.seam else seat.variants
        assert {a: mine.variants[a] for a in inner} == {a: seat.variants[a] for a in inner}


@FAMILIES
def test_the_draft_is_right_and_formatted(family: Family) -> None:
    model, found = scanned(family.name)
    binding = compiled(family.name)
    assert format_source(SourceFile.from_text("draft.frt", found.binding)).text == found.binding
    assert {key(s) for s in binding.seats(model)} == {key(s.seat("s")) for s in found.seats}


@FAMILIES
def test_verify_accepts_the_draft(family: Family) -> None:
    model, _ = scanned(family.name)
    (sample,) = family.samples(1, seed=3)
    report = verify(compiled(family.name), model, lambda: model(**sample))
    assert report.ok, report.text()


@FAMILIES
def test_every_module_is_seated_or_left_out_with_a_reason(family: Family) -> None:
    model, found = scanned(family.name)
    claimed = {path for seat in found.seats for path in seat.claims}
    reasons = found.reasons()
    for path, module in model.named_modules():
        own = [f"{path}.{name}" for name, p in module._parameters.items() if p is not None]
        if own and not isinstance(module, nn.Embedding):
            assert set(own) <= claimed or path in reasons, path


@FAMILIES
def test_it_changes_nothing(family: Family) -> None:
    model = family.model()
    (sample,) = family.samples(1)
    with torch.no_grad():
        before = model(**sample)[0]
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    scan(model, lambda: model(**sample))
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())
    with torch.no_grad():
        assert torch.equal(model(**sample)[0], before)
    assert all(torch.equal(model.state_dict()[name], state[name]) for name in state)


@FAMILIES
def test_without_a_run_it_says_what_is_not_proven(family: Family) -> None:
    found = scan(family.model())
    assert not found.proven
    assert "no run was given" in found.explain()
    assert {seat.target for seat in found.seats} == {
        s.target for s in scanned(family.name)[1].seats
    }
