"""What changes more slowly than the host runs it: told by a run, and by nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from frtspec.live.scan import ScanResult, scan

D = 16


class Step(nn.Module):
    """A step that reads keys of a prompt, projected anew each time."""

    def __init__(self) -> None:
        super().__init__()
        self.query = nn.Linear(D, D)
        self.key = nn.Linear(D, D)
        self.out = nn.Linear(D, D)

    def forward(self, x: Tensor, prompt: Tensor) -> Tensor:
        found: Tensor = self.out(torch.softmax(self.query(x) @ self.key(prompt).mT, -1) @ prompt)
        return found


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(D, D)
        self.second = nn.Linear(D, D)

    def forward(self, x: Tensor) -> Tensor:
        found: Tensor = self.second(torch.sin(self.first(x)))
        return found


class Policy(nn.Module):
    """An encoder that runs once, and steps that run in a loop."""

    def __init__(self, steps: int = 3) -> None:
        super().__init__()
        self.steps = steps
        self.words = nn.Embedding(5, D)
        self.encoder = Encoder()
        self.step = Step()

    def forward(self, seen: Tensor, noise: Tensor) -> Tensor:
        prompt = self.encoder(seen) + self.words(torch.zeros(1, dtype=torch.long))
        for _ in range(self.steps):
            noise = noise + self.step(noise, prompt)
        return noise


def updates(found: ScanResult) -> dict[str, str | None]:
    return {seat.path: seat.cadence for seat in found.seats if seat.form == "update"}


def scanned(model: nn.Module, run: Callable[[], object]) -> ScanResult:
    return scan(model.eval(), run)


@pytest.fixture
def given() -> tuple[Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(1, 3, D), torch.randn(1, 2, D)


def test_what_gives_the_same_at_every_step_and_what_runs_ahead(given: tuple[Tensor, ...]) -> None:
    model = Policy()
    found = scanned(model, lambda: model(*given))
    assert updates(found) == {"step.key": "observation", "encoder": "observation"}
    # A projection that is held is no projection to be quantised; the parts of an encoder are.
    plain = {seat.path for seat in found.seats if seat.target == "linear_proj"}
    assert plain == {"step.query", "step.out", "encoder.first", "encoder.second"}
    assert "form update (cadence = observation)" in found.binding


def test_what_the_caller_hands_over_again_is_of_its_prompt(given: tuple[Tensor, ...]) -> None:
    prompt, x = given
    model = Step()
    found = scanned(model, lambda: model(model(x, prompt), prompt))
    assert updates(found) == {"key": "prompt"}


def test_one_call_of_everything_shows_nothing(given: tuple[Tensor, ...]) -> None:
    model = Policy(steps=1)
    assert updates(scanned(model, lambda: model(*given))) == {}


def test_the_same_run_twice_shows_nothing(given: tuple[Tensor, ...]) -> None:
    model = Policy(steps=1)
    assert updates(scanned(model, lambda: [model(*given), model(*given)])) == {}


def test_a_small_change_is_a_change(given: tuple[Tensor, ...]) -> None:
    prompt, x = given
    later = prompt.clone()
    later[0, 0, 0] += 1e-3
    model = Step()
    assert updates(scanned(model, lambda: model(model(x, prompt), later))) == {}


def test_what_is_handed_more_than_one_tensor_is_none(given: tuple[Tensor, ...]) -> None:
    """Its input alone would not tell whether the result still holds."""

    class Both(Encoder):
        def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
            assert y is not None
            return super().forward(x + y)

    class Host(Policy):
        def forward(self, seen: Tensor, noise: Tensor) -> Tensor:
            prompt = self.encoder(seen, seen)
            for _ in range(self.steps):
                noise = noise + self.step(noise, prompt)
            return noise

    model = Host()
    model.encoder = Both()
    assert updates(scanned(model, lambda: model(*given))) == {"step.key": "observation"}


def test_layers_in_a_row_are_no_whole(given: tuple[Tensor, ...]) -> None:
    class Host(Policy):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([Encoder(), Encoder()])

        def forward(self, seen: Tensor, noise: Tensor) -> Tensor:
            for layer in self.layers:
                seen = layer(seen)
            return super().forward(seen, noise)

    model = Host()
    assert "layers.0" not in updates(scanned(model, lambda: model(*given)))


def test_flops_are_counted_where_the_model_itself_is_not_called(
    given: tuple[Tensor, ...],
) -> None:
    seen, x = given
    model = Policy()
    found = scanned(model, lambda: model.step(x, model.encoder(seen)))
    assert 0 < found.coverage.flops_seated <= found.coverage.flops
