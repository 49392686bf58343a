"""The ways in for data: one callable, a list of thunks, or observations.

Everything becomes one stream of thunks. A thunk takes nothing, runs the host
once and returns what the host returns. Streams are pulled one at a time, so an
endless source is fine and ``max_samples`` never reads past its limit.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from typing import Any

import torch

from frtspec.runtime.errors import Refusal

Thunk = Callable[[], Any]


class Samples:
    """A stream of thunks with its first thunk known.

    Iterate once: the source may be a generator. ``first`` can be called any number
    of times.
    """

    def __init__(self, thunks: Iterable[Thunk], *, what: str) -> None:
        self._source = iter(thunks)
        try:
            self.first = next(self._source)
        except StopIteration:
            raise _empty(what) from None

    def __iter__(self) -> Iterator[Thunk]:
        return chain((self.first,), self._source)


def calibration(
    forward: Any, observations: Any = None, *, max_samples: int | None = None
) -> Samples:
    """The samples to calibrate on.

    forward        callable: one sample, or ``forward(obs)`` for each observation;
                   a list or tuple of thunks: one sample each
    observations   any iterable; pulled lazily
    max_samples    at most this many are pulled

    Raises Refusal ``samples.*`` when the combination makes no sense or is empty.
    """
    if observations is not None:
        _require_callable(forward, "observations= needs a forward that takes one observation")
        _require_takes(forward, 1, "observations= is given")
        thunks = (partial(forward, item) for item in items(observations, "observations"))
        return Samples(islice(thunks, max_samples), what="observations=")
    if callable(forward):
        _require_takes(forward, 0, "observations= is not given")
        return Samples((forward,), what="forward")
    return Samples(islice(_thunks(forward), max_samples), what="forward")


def held_out(
    source: Any, forward: Any, *, observed: bool, max_samples: int | None = None
) -> list[Thunk] | None:
    """The samples to judge on, or None when the caller gave none.

    ``source`` comes in like calibration's: a callable, thunks, or observations for
    ``forward(obs)``. ``observed`` says that calibration used observations, so the
    items here are observations too, whatever their type.
    """
    if source is None:
        return None
    if callable(source):
        return [source]
    thunks: list[Thunk] = []
    for item in islice(items(source, "held_out"), max_samples):
        if callable(item) and not observed:
            thunks.append(item)
        else:
            _require_callable(forward, "held_out= holds observations, so forward must take one")
            _require_takes(forward, 1, "held_out= holds observations")
            thunks.append(partial(forward, item))
    if not thunks:
        raise _empty("held_out=")
    return thunks


def run(thunk: Thunk) -> Any:
    """What the host returns for this sample, without recording gradients."""
    with torch.no_grad():
        return thunk()


def _empty(what: str) -> Refusal:
    return Refusal(
        "samples.empty",
        f"{what} holds no sample",
        fix="pass at least one sample of the host's real traffic",
    )


def items(source: Any, option: str) -> Iterable[Any]:
    """``source`` where it is a collection of observations; Refusal ``option.<option>`` else."""
    if isinstance(source, str | bytes | Mapping | torch.Tensor) or not isinstance(source, Iterable):
        raise Refusal(
            f"option.{option}",
            f"{option}= is one {type(source).__name__}, not a collection of observations",
            fix=f"pass an iterable with one item a sample, e.g. {option}=[item]",
        )
    return source


def _thunks(forward: Any) -> Iterator[Thunk]:
    if not isinstance(forward, list | tuple):
        raise Refusal(
            "option.forward",
            f"forward is a {type(forward).__name__}; expected a callable or a list of callables",
            fix="pass a function that runs the model once, or a list of such functions",
        )
    for position, item in enumerate(forward):
        _require_callable(item, f"forward[{position}] can't be called")
    return iter(forward)


def _require_callable(value: Any, what: str) -> None:
    if not callable(value):
        raise Refusal(
            "option.forward",
            f"{what}; found a {type(value).__name__}",
            fix="pass a function; with observations= it takes one observation",
        )


def _require_takes(forward: Callable[..., Any], count: int, why: str) -> None:
    """Refuses a forward that can't be called with ``count`` positional arguments."""
    try:
        signature = inspect.signature(forward)
    except (TypeError, ValueError):  # some builtins have none to look at
        return
    try:
        signature.bind(*[None] * count)
    except TypeError as error:
        wanted = "one argument, an observation" if count else "no argument"
        raise Refusal(
            "option.forward",
            f"{why}, so forward is called with {wanted}; forward{signature} can't be: {error}",
            fix="pass observations= to a forward that takes one, and leave it out for one that "
            "takes none",
        ) from None
