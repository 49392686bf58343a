"""The options of ``attach`` and ``build``, checked before the host is looked at."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating.metrics import HIGHER, LOWER

RUNGS = ("hub", "local", "torch", "emulate")
LATENCY = ("auto", "skip")
GUARD = ("fallback", "raise")


@dataclass(frozen=True)
class Options:
    """What the caller asked for, normalised; see ``attach`` for the meanings."""

    scheme: str = "auto"
    structures: tuple[str, ...] | None = None
    percentile: float = 99.9
    max_samples: int | None = None
    floors: Mapping[str, float] = field(default_factory=dict)
    min_speedup: float = 1.02
    rounds: int = 5
    iters: int = 10
    on_guard_fail: str = "fallback"
    rungs: tuple[str, ...] | None = None
    latency: str = "auto"

    @staticmethod
    def of(**given: Any) -> Options:
        """Checked options. Raises Refusal ``option.<name>`` with what is allowed."""
        given = {
            **given,
            "structures": _names("structures", given.get("structures")),
            "rungs": _names("rungs", given.get("rungs")),
            "floors": dict(_mapping("floors", given.get("floors"))),
        }
        options = Options(**given)
        options._check()
        return options

    def _check(self) -> None:
        _whole("rounds", self.rounds, least=1)
        _whole("iters", self.iters, least=1)
        if self.max_samples is not None:
            _whole("max_samples", self.max_samples, least=1)
        _number("percentile", self.percentile, 0.0, 100.0)
        _number("min_speedup", self.min_speedup, 0.0, math.inf)
        one_of("on_guard_fail", self.on_guard_fail, GUARD)
        one_of("latency", self.latency, LATENCY)
        for kind in self.rungs or ():
            one_of("rungs", kind, RUNGS)
        for metric, value in self.floors.items():
            one_of("floors", metric, (*HIGHER, *LOWER))
            _number("floors", value, -math.inf, math.inf, item=f"[{metric}]")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def one_of(option: str, value: Any, known: Iterable[str]) -> None:
    """Refuses a value that isn't one of ``known``, with the nearest one that is."""
    names = list(known)
    if value in names:
        return
    near = difflib.get_close_matches(str(value), names, n=1)
    raise Refusal(
        f"option.{option}",
        f"{option}={value!r} is unknown; known: {', '.join(names) or 'none'}",
        fix=f"did you mean {near[0]!r}?" if near else f"pass one of the known values of {option}",
    )


def _names(option: str, value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    if not isinstance(value, Iterable):
        raise Refusal(
            f"option.{option}",
            f"{option}={value!r} is a {type(value).__name__}, not a sequence of names",
            fix=f"pass for instance {option}=('name',), or leave it out to allow everything",
        )
    names = (value,) if isinstance(value, str) else tuple(value)
    if not names:
        raise Refusal(
            f"option.{option}",
            f"{option}= names nothing",
            fix=f"leave {option} out to allow everything, or name at least one",
        )
    return names


def _mapping(option: str, value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Refusal(
            f"option.{option}",
            f"{option}= is a {type(value).__name__}, not a mapping of metric to number",
            fix=f"pass {option}={{'cosine': 0.999}}",
        )
    return value


def _whole(option: str, value: Any, *, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise Refusal(
            f"option.{option}",
            f"{option}={value!r} is not a whole number of at least {least}",
            fix=f"pass an int, {least} or more",
        )


def _number(option: str, value: Any, above: float, most: float, item: str = "") -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not math.isfinite(value) or not above < value <= most:
        limits = f" above {above:g}" if math.isfinite(above) else ""
        limits += f", at most {most:g}" if math.isfinite(most) else ""
        raise Refusal(
            f"option.{option}",
            f"{option}{item}={value!r} is not a finite number{limits}",
            fix="pass such a number",
        )
