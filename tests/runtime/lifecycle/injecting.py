"""Faults at every step of a piece of work, found by running it once and listening.

A *point* is a moment at which a fault can be planted: a function of ``frtspec.runtime`` is
about to run, it is about to call into C (a file operation, an op on a tensor), or an op of
torch is about to return. Points are named by where they are and by how often that came
before, so a second run of the same work reaches the same ones.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

import frtspec.runtime

RUNTIME = str(Path(frtspec.runtime.__file__).parent)
C_MODULES = ("posix", "_io", "fcntl", "torch", "torch._C", "torch._C._nn")

FAULTS: dict[str, Callable[[], BaseException]] = {
    "exception": lambda: RuntimeError("planted"),
    "interrupt": lambda: KeyboardInterrupt("planted"),
    "memory": lambda: torch.OutOfMemoryError("planted: out of memory"),
}


class Point(NamedTuple):
    """``kind``: call, c_call or op. ``turn``: how often the place was passed before."""

    kind: str
    place: str
    turn: int


class Planted(NamedTuple):
    """A fault (one of FAULTS, or ``nan``) at a point."""

    point: Point
    fault: str

    def __str__(self) -> str:
        return f"{self.fault} at {self.point.kind} {self.point.place} #{self.point.turn}"


def _of_runtime(frame: FrameType | None) -> str | None:
    """The function that a frame runs, where it is the runtime's."""
    if frame is None or not frame.f_code.co_filename.startswith(RUNTIME):
        return None
    name = frame.f_code.co_filename[len(RUNTIME) + 1 :]
    return f"{name}:{frame.f_code.co_qualname}"


class Listener(TorchFunctionMode):
    """Hears of every point; ``reach(point)`` may raise, ``spoil`` may change an op's result."""

    def __init__(self, reach: Callable[[Point], None], spoil: Callable[[Point, Any], Any]) -> None:
        super().__init__()
        self.reach, self.spoil = reach, spoil
        self.turns: Counter[tuple[str, str]] = Counter()

    def point(self, kind: str, place: str) -> Point:
        turn = self.turns[kind, place]
        self.turns[kind, place] += 1
        return Point(kind, place, turn)

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        where = _of_runtime(frame)
        if where is None or event not in ("call", "c_call"):
            return
        if event == "c_call":
            of_tensor = isinstance(getattr(arg, "__self__", None), Tensor)
            if not of_tensor and getattr(arg, "__module__", None) not in C_MODULES:
                return
            where = f"{where} -> {arg.__name__}"
        self.reach(self.point(event, where))

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and _of_runtime(frame) is None:
            frame = frame.f_back
        name = getattr(func, "__name__", "op")
        return self.spoil(self.point("op", f"{_of_runtime(frame)} -> {name}"), result)


@contextmanager
def _listening(listener: Listener) -> Iterator[None]:
    with listener:
        sys.setprofile(listener.profile)
        try:
            yield
        finally:
            sys.setprofile(None)


def points(work: Callable[[], Any]) -> list[Point]:
    """Every point that the work passes, in order."""
    found: list[Point] = []

    def spoil(point: Point, result: Any) -> Any:
        found.append(point)
        return result

    with _listening(Listener(found.append, spoil)):
        work()
    return found


def ends(found: list[Point]) -> list[Point]:
    """The first and the last time that each place was passed, and one between."""
    last = {(p.kind, p.place): p.turn for p in found}
    chosen = {(k, w): sorted({0, turn // 2, turn}) for (k, w), turn in last.items()}
    return [Point(kind, place, turn) for (kind, place), turns in chosen.items() for turn in turns]


def planted(found: list[Point]) -> list[Planted]:
    """Each fault wherever it can happen: NaN and a lack of memory where tensors are made."""
    every = []
    for point in found:
        faults = ("nan", "memory") if point.kind == "op" else ("exception", "interrupt")
        every += [Planted(point, fault) for fault in faults]
    return every


def sample(every: list[Planted], count: int, seed: int) -> list[Planted]:
    """Some of them, with as many of each fault."""
    chance = random.Random(seed)
    names = (*FAULTS, "nan")
    groups = [[p for p in every if p.fault == fault] for fault in names]
    return [p for group in groups for p in chance.sample(group, min(len(group), count // 4))]


def run_with(fault: Planted, work: Callable[[], Any]) -> tuple[Any, BaseException | None, bool]:
    """The work's result, what it raised, and whether the fault met it.

    It did not where the point never came, or lay in a destructor, where Python drops what is
    raised.
    """
    reached: list[Point] = []
    dropped: list[Any] = []

    def reach(point: Point) -> None:
        if point == fault.point and not reached:
            reached.append(point)
            raise FAULTS[fault.fault]()

    def spoil(point: Point, result: Any) -> Any:
        if point != fault.point or reached:
            return result
        reached.append(point)
        if fault.fault != "nan":
            raise FAULTS[fault.fault]()
        return _as_nan(result)

    before, sys.unraisablehook = sys.unraisablehook, dropped.append
    try:
        with _listening(Listener(reach, spoil)):
            return work(), None, bool(reached) and not dropped
    except BaseException as error:  # noqa: BLE001 - whatever it is: the caller looks at it
        return None, error, bool(reached)
    finally:
        sys.unraisablehook = before


def _as_nan(result: Any) -> Any:
    """A new tensor of NaN in the place of one of floats; never written into what was there."""
    if isinstance(result, Tensor) and result.is_floating_point() and result.dtype.itemsize > 1:
        return torch.full_like(result, float("nan"))
    if isinstance(result, tuple) and type(result) is tuple:
        return tuple(_as_nan(item) for item in result)
    return result
