"""Dims that no tensor shows: the reference takes them by keyword, and callers know which."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch
from codegen_kit import structure_module

from frtspec.runtime import Refusal
from frtspec.runtime.gating.reference import SeatReference
from frtspec.runtime.spec import Seat

SPLIT = """frt 1

structure split_heads version 1 {
  dim M, H, G, D
  in  x [rows M, (H + G)*D] : host
  out y [rows M, H, D] : host
  slot w [G]
  reference {
    let scaled = x * sum(w)
    yield y = unflatten(split(scaled, (H*D, G*D))[0], (H, D))
  }
}
"""


def seat(dims: dict[str, int], spec: Any) -> Seat:
    place = SimpleNamespace(
        structure=spec, seam=None, dims=dims, name="heads", variants={}, params={}, boundary=None
    )
    return cast(Seat, place)


def test_the_reference_takes_them_by_keyword() -> None:
    module = structure_module(SPLIT)
    assert module.SPEC.sizes == {"h": "H", "d": "D"}
    x = torch.arange(10.0).reshape(1, 10)
    y = module.reference(x, w=torch.tensor([0.25, 0.25, 0.5]), h=2, d=2)
    assert torch.equal(y, torch.arange(4.0).reshape(1, 2, 2))


def test_a_seat_gives_what_its_binding_fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    module = structure_module(SPLIT)
    weights = {"w": torch.ones(3)}
    monkeypatch.setattr("frtspec.runtime.hosts.host.seat_weights", lambda model, seat: weights)
    found = SeatReference(seat({"H": 2, "D": 2}, module.SPEC), torch.nn.Module())
    assert found.sizes == {"h": 2, "d": 2}


def test_a_seat_without_them_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    module = structure_module(SPLIT)
    monkeypatch.setattr(
        "frtspec.runtime.hosts.host.seat_weights", lambda model, seat: {"w": torch.ones(3)}
    )
    with pytest.raises(Refusal, match="D of split_heads v1 is not determined"):
        SeatReference(seat({"H": 2}, module.SPEC), torch.nn.Module())
