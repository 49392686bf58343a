"""Who holds a module or a parameter: one walk for many questions, and none too old."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts.census import Census, counted
from frtspec.runtime.hosts.weights import check_readable


def host() -> nn.Sequential:
    shared = nn.Linear(4, 4)
    tied = nn.Linear(4, 4, bias=False)
    tied.weight = shared.weight
    return nn.Sequential(shared, tied, nn.ModuleList([shared]))


def test_every_place_of_a_module_and_of_a_parameter() -> None:
    model = host()
    census = Census.of(model)
    assert census.modules[id(model[0])] == ("0", "2.0")
    places = census.parameters[id(model[0].weight)]
    assert [(path, name) for path, _, name in places] == [("0", "weight"), ("1", "weight")]


def test_inside_it_is_one_and_the_same() -> None:
    model, other = host(), host()
    with counted(model):
        assert Census.of(model) is Census.of(model)
        assert Census.of(other).model is other
    assert Census.of(model) is not Census.of(model)


def test_a_tie_made_later_is_seen_outside() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    with counted(model):
        check_readable(model, "0.weight", model[0], "weight", model[0].weight)
    model[1].weight = model[0].weight
    with pytest.raises(Refusal, match=r"tied to 1\.weight"):
        check_readable(model, "0.weight", model[0], "weight", model[0].weight)


def test_a_large_model_is_walked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(50)))
    walks = []
    taken = Census.taken
    monkeypatch.setattr(Census, "taken", lambda m: walks.append(m) or taken(m))
    with counted(model), torch.no_grad():
        for k, layer in enumerate(model):
            check_readable(model, f"{k}.weight", layer, "weight", layer.weight)
    assert len(walks) == 1
