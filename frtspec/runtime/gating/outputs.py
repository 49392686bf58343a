"""What the untouched host returns for the judged samples, kept to compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from frtspec.runtime.environment import device_is_lost
from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating import metrics
from frtspec.runtime.gating.arms import Runner
from frtspec.runtime.gating.metrics import View
from frtspec.runtime.gating.reorder import REVERSED, ReversedSums
from frtspec.runtime.observation import samples
from frtspec.runtime.observation.samples import Thunk
from frtspec.runtime.records import Noise, Variation

KEEP_BYTES = 1 << 31
"""Outputs of the untouched host that are kept; past that it is run again when needed."""


class Untouched:
    """The untouched host's outputs, one for each judged sample, all of one kind."""

    def __init__(self, output: Callable[[Any], Any] | None = None, kind: str | None = None) -> None:
        """``output``: what is judged of what the host returns, on both sides alike; ``kind``:
        what it is, where the caller says so."""
        self._output, self._as = output, kind
        self.kind: str | None = None
        self.thunks: list[Thunk] = []
        self._views: list[View | None] = []
        self._bytes = 0

    def recording(self, thunk: Thunk) -> Thunk:
        """``thunk``, which also keeps what it returned the first time."""
        place = len(self.thunks)
        self.thunks.append(thunk)
        self._views.append(None)

        def run() -> object:
            output = thunk()
            self._keep(place, self.seen(output))
            return output

        return run

    def judged(self, output: object) -> View:
        """The judged tensors of an output, the host's or a treated one's."""
        return metrics.view(self._output(output) if self._output else output, self._as)

    def seen(self, output: object) -> View:
        """The judged tensors of an output of the untouched host.

        Raises Refusal ``host.output`` (no tensor, or another kind than before) or
        ``host.nonfinite``.
        """
        view = self.judged(output)
        self.kind = self.kind or view.kind
        if view.kind != self.kind:
            raise Refusal(
                "host.output",
                f"forward returned {self.kind} first and {view.kind} now",
                fix="let forward return the same kind of output for every sample",
            )
        for name, tensor in view.tensors.items():
            fault = metrics.broken(name, tensor, tensor)
            if fault:
                raise Refusal(
                    "host.nonfinite",
                    f"the untouched host's output can't be judged: {fault}",
                    fix="check the model, its dtype and the samples before attaching anything",
                )
        return view

    def _keep(self, place: int, view: View) -> None:
        if self._views[place] is None and self._bytes + view.nbytes <= KEEP_BYTES:
            self._views[place] = view.kept()
            self._bytes += view.nbytes

    def view(self, place: int, untouched: Callable[[Thunk], object]) -> View:
        """Sample ``place``; ``untouched`` runs a thunk on the host as it was."""
        kept = self._views[place]
        return kept if kept is not None else self.seen(untouched(self.thunks[place])).kept()


def noise_of(untouched: Untouched, thunk: Thunk, forms: Sequence[Runner] = ()) -> Noise:
    """The untouched host against itself on one sample: run twice, with every matrix product
    summed in another order, and in each of the forms given.

    Raises Refusal ``host.unrepeatable`` when two runs are so far apart that no difference of
    ours could be told from the host's own, or differ at all where torch is set to
    deterministic algorithms.
    """
    first = untouched.seen(samples.run(thunk)).kept()
    again = _variation("run twice", first, untouched.seen(samples.run(thunk)))
    edge = metrics.BANDS[first.kind]
    found = edge.metric
    value = 1.0 if again.metrics is None else again.metrics.get(found, float("-inf"))
    promised = torch.are_deterministic_algorithms_enabled()
    if not value >= edge.warn or (promised and again.metrics is not None):
        told = again.broken or f"{found} {value:.6g} between two runs"
        if promised:
            told += ", with deterministic algorithms asked for"
        raise Refusal(
            "host.unrepeatable",
            f"the untouched host does not repeat itself on the same sample: {told}",
            fix="seed the generator inside forward, or pass noise and caches in as arguments",
        )
    variations = [_in_another_order(untouched, first, thunk)]
    for runner in forms:
        what = f"run {runner.form}"
        variations.append(_variation(what, first, untouched.seen(runner(thunk))))
    note = "the untouched host repeats itself bit for bit"
    if again.metrics is not None:
        note = (
            f"the untouched host differs from itself: {found} {value:.6g} on one sample run twice"
        )
    return Noise(again.metrics, note, tuple(variations))


def _in_another_order(untouched: Untouched, first: View, thunk: Thunk) -> Variation:
    with ReversedSums() as products:
        try:
            output = samples.run(thunk)
        except Exception as error:  # a tensor type that can't be flipped: there is no such figure
            if device_is_lost(error):
                raise
            return Variation(REVERSED, broken=f"raised {type(error).__name__}: {error}")
    if not products.count:
        return Variation(REVERSED, broken="the host showed no matrix product")
    return _variation(f"{REVERSED} ({products.count} products)", first, untouched.seen(output))


def _variation(what: str, first: View, second: View) -> Variation:
    if _same_bits(first, second):
        return Variation(what)
    comparison = metrics.comparison(first.kind)
    comparison.add(first.tensors, second.tensors)
    scores = comparison.scores()
    return Variation(what, dict(scores.metrics), scores.broken or "")


def _same_bits(first: View, second: View) -> bool:
    if first.kind != second.kind or list(first.tensors) != list(second.tensors):
        return False
    pairs: Sequence[tuple[torch.Tensor, torch.Tensor]] = [
        (first.tensors[name], second.tensors[name]) for name in first.tensors
    ]
    return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)
