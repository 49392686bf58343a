"""What the untouched host returns for the judged samples, kept to compare with."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating import metrics
from frtspec.runtime.gating.metrics import View
from frtspec.runtime.observation import samples
from frtspec.runtime.observation.samples import Thunk
from frtspec.runtime.records import Noise

KEEP_BYTES = 1 << 31
"""Outputs of the untouched host that are kept; past that it is run again when needed."""


class Untouched:
    """The untouched host's outputs, one for each judged sample, all of one kind."""

    def __init__(self) -> None:
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

    def seen(self, output: object) -> View:
        """The judged tensors of an output of the untouched host.

        Raises Refusal ``host.output`` (no tensor, or another kind than before) or
        ``host.nonfinite``.
        """
        view = metrics.view(output)
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


def noise_of(untouched: Untouched, thunk: Thunk) -> Noise:
    """The untouched host twice on one sample.

    Raises Refusal ``host.unrepeatable`` when the two runs are so far apart that no
    difference of ours could be told from the host's own.
    """
    first = untouched.seen(samples.run(thunk)).kept()
    second = untouched.seen(samples.run(thunk))
    if _same_bits(first, second):
        return Noise(None, "the untouched host repeats itself bit for bit")
    comparison = metrics.comparison(first.kind)
    comparison.add(first.tensors, second.tensors)
    scores = comparison.scores()
    edge = metrics.BANDS[first.kind]
    value = scores.metrics.get(edge.metric, float("-inf"))
    if not value >= edge.warn:
        found = scores.broken or f"{edge.metric} {value:.6g} between two runs"
        raise Refusal(
            "host.unrepeatable",
            f"the untouched host does not repeat itself on the same sample: {found}",
            fix="seed the generator inside forward, or pass noise and caches in as arguments",
        )
    return Noise(
        dict(scores.metrics),
        f"the untouched host differs from itself: {edge.metric} {value:.6g} on one sample run twice",
    )


def _same_bits(first: View, second: View) -> bool:
    if first.kind != second.kind or list(first.tensors) != list(second.tensors):
        return False
    pairs: Sequence[tuple[torch.Tensor, torch.Tensor]] = [
        (first.tensors[name], second.tensors[name]) for name in first.tensors
    ]
    return all(a.dtype == b.dtype and torch.equal(a, b) for a, b in pairs)
