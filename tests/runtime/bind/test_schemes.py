"""scheme=: by name, and what ``auto`` stands for on a device."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from frtspec.runtime.eligibility import schemes
from frtspec.runtime.errors import Refusal
from tests.runtime.hosts_small import BINDING

CPU = torch.device("cpu")


def test_by_name() -> None:
    assert schemes.resolve(BINDING, "fp8_static", CPU).name == "fp8_static"
    assert schemes.resolve(BINDING, "none", CPU).name == "none"


@pytest.mark.parametrize(
    ("capability", "name"),
    [(None, "none"), (8.0, "none"), (8.9, "fp8_static"), (9.0, "fp8_static"), (12.1, "fp8_static")],
)
def test_auto_follows_the_table(capability: float | None, name: str) -> None:
    assert schemes.automatic(BINDING, capability) == name


def test_auto_asks_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert schemes.resolve(BINDING, "auto", CPU).name == "none"
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (8, 9))
    assert schemes.capability(torch.device("cuda:0")) == 8.9
    assert schemes.resolve(BINDING, "auto", torch.device("cuda:0")).name == "fp8_static"


def test_unknown_names_and_tables_without_an_end() -> None:
    with pytest.raises(Refusal) as caught:
        schemes.resolve(BINDING, "fp8_statik", CPU)
    assert caught.value.code == "option.scheme" and "'fp8_static'" in caught.value.fix
    with pytest.raises(Refusal) as caught:
        schemes.resolve(replace(BINDING, auto=((8.9, "fp8_static"),)), "auto", CPU)
    assert "no row for this device" in caught.value.what
