"""The options of ``attach`` and ``build``: declared once, checked before the host is looked at.

Generated packages pass theirs on as they are, so an option is added here and nowhere else.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, TypedDict

from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating.baselines import BASELINES
from frtspec.runtime.gating.metrics import HIGHER, KINDS, LOWER
from frtspec.runtime.memory.budget import bytes_of
from frtspec.runtime.memory.store import WeightStore

RUNGS = ("hub", "local", "torch", "emulate")
LATENCY = ("auto", "skip")
GUARD = ("fallback", "raise")
ORIGINALS = ("resident", "consumed")
FORMS = ("eager", "compiled", "captured")
NO_BASELINES = "none"


class BuildOptions(TypedDict, total=False):
    """What ``build`` takes by keyword.

    scheme         a quantisation scheme by name, or "auto" by device
    structures     names of structures (or ``structure.seam``) to attach; None: all
    observations   what to calibrate on; any iterable, pulled one at a time
    percentile     across samples, of each sample's largest magnitude
    max_samples    at most this many samples are pulled from either stream
    on_guard_fail  "fallback" to the host's module, or "raise"
    rungs          only these kinds of rung: hub, local, torch, emulate (the last runs
                   only when named here)
    calibration    a saved one (a file, a folder of them, or a Calibration), or "auto" to use
                   the cache's and keep it there; None: measure
    group          ``torch.distributed`` group, or "world", whose ranks attach as one: samples
                   united, a seat bound on all or on none; None: this process alone
    decisions      which rung was measured first on this box: a file, "auto" for the cache's,
                   or None to try rungs in the impl's order
    originals      the host's weights behind bound seats: "resident" beside the packs, or
                   "consumed": put away, and brought back on a fallback or at detach
    checkpoint     a `.safetensors` file or folder that consumed weights are read back from,
                   where it holds their bits; host memory else
    memory_budget  bytes that packs may hold, a number or "2 GiB"; seats past it are refused.
                   None: on a GPU what is free there, else no limit
    prefix_cadence  True: the caller refreshes (``plan.updates``) when the observation or prompt
                   changes, so what moves only then may be held in between. False: nothing is
    step_tables    True: projections of a conditioning that takes the few values that calibration
                   saw (steps of a denoising loop) are looked up; an unknown step runs the host
    strict         raise Refusal ``plan.nothing_bound`` where no seat binds, the host untouched
    """

    scheme: str
    structures: Sequence[str] | None
    observations: Iterable[Any] | None
    percentile: float
    max_samples: int | None
    on_guard_fail: str
    rungs: Sequence[str] | None
    calibration: Any
    group: Any
    decisions: Any
    originals: str
    checkpoint: Any
    memory_budget: int | str | None
    prefix_cadence: bool
    step_tables: bool
    strict: bool


class AttachOptions(BuildOptions, total=False):
    """What ``attach`` takes by keyword: all of ``BuildOptions``, and

    held_out       samples to judge on: more observations where there are
                   ``observations``, else functions like ``forward``; without them the
                   gates run on calibration samples and say ``fit residual``
    output         function of what ``forward`` returned -> what is judged of it, on both
                   sides alike; None: all of it
    output_kind    "values" or "distribution"; None: logits by name are a distribution
    floors         metric -> number that the host's output must meet
    min_speedup    a unit whose gain is not surely this large is kept
    rounds, iters  of the latency gate: rounds of four legs, calls a leg
    latency        "auto", or "skip" to activate on accuracy alone
    form           in which the host is judged, as it will be deployed: "eager", "compiled"
                   (both sides under ``torch.compile``) or "captured" (both as a CUDA graph)
    baselines      which of the baselines that specs name are timed beside the host, by word
                   ("torch_compile" costs a compilation); "none"; None: all of them
    max_trials     host trials that the search for what holds may take: in a union of units, and
                   (half of them at most) inside units that miss as a whole
    """

    held_out: Any
    output: Callable[[Any], Any] | None
    output_kind: str | None
    floors: Mapping[str, float] | None
    min_speedup: float
    rounds: int
    iters: int
    latency: str
    form: str
    baselines: Sequence[str] | str | None
    max_trials: int


@dataclass(frozen=True)
class Sources:
    """The options that are objects of this process: a receipt has nothing of them."""

    observations: Iterable[Any] | None = None
    held_out: Any = None
    calibration: Any = None
    group: Any = None
    decisions: Any = "auto"
    output: Callable[[Any], Any] | None = None
    checkpoint: Any = None


@dataclass(frozen=True)
class Options:
    """What the caller asked for, normalised; the receipt keeps it."""

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
    form: str = "eager"
    baselines: tuple[str, ...] | None = None
    output_kind: str | None = None
    max_trials: int = 32
    strict: bool = False
    originals: str = "resident"
    memory_budget: int | None = None
    prefix_cadence: bool = False
    step_tables: bool = False

    @staticmethod
    def of(**given: Any) -> Options:
        """Checked options. Raises Refusal ``option.<name>`` with what is allowed."""
        given = {
            **given,
            "structures": _names("structures", given.get("structures")),
            "rungs": _names("rungs", given.get("rungs")),
            "baselines": _baselines(given.get("baselines")),
            "floors": dict(_mapping("floors", given.get("floors"))),
        }
        if given.get("memory_budget") is not None:
            given["memory_budget"] = bytes_of(given["memory_budget"])
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
        one_of("originals", self.originals, ORIGINALS)
        one_of("form", self.form, FORMS)
        _flag("prefix_cadence", self.prefix_cadence)
        _flag("step_tables", self.step_tables)
        _flag("strict", self.strict)
        _whole("max_trials", self.max_trials, least=1)
        if self.output_kind is not None:
            one_of("output_kind", self.output_kind, KINDS)
        for word in self.baselines or ():
            one_of("baselines", word, BASELINES)
        for kind in self.rungs or ():
            one_of("rungs", kind, RUNGS)
        for metric, value in self.floors.items():
            one_of("floors", metric, (*HIGHER, *LOWER))
            _number("floors", value, -math.inf, math.inf, item=f"[{metric}]")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def read(door: str, given: Mapping[str, Any]) -> tuple[Options, Sources]:
    """Options and sources of what a door was given by keyword.

    Raises Refusal ``option.unknown`` for a keyword that this door has not, and
    ``option.<name>`` for a value that can't be.
    """
    known = (AttachOptions if door == "attach" else BuildOptions).__annotations__
    for name in given:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            other = "; it is an option of attach" if name in AttachOptions.__annotations__ else ""
            raise Refusal(
                "option.unknown",
                f"{door} has no option {name}=; known: {', '.join(known)}",
                fix=f"did you mean {near[0]}=?" if near else f"leave {name}= out{other}",
            )
    objects = {f.name for f in fields(Sources)}
    options = {"latency": "skip"} if door == "build" else {}
    options |= {name: value for name, value in given.items() if name not in objects}
    sources = Sources(**{name: value for name, value in given.items() if name in objects})
    if sources.output is not None and not callable(sources.output):
        raise Refusal(
            "option.output",
            f"output= is a {type(sources.output).__name__}, not a function",
            fix="pass a function of what forward returns, such as lambda out: out.actions",
        )
    if sources.checkpoint is not None and not isinstance(sources.checkpoint, WeightStore):
        sources = replace(sources, checkpoint=WeightStore(sources.checkpoint))
    return Options.of(**options), sources


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


def _baselines(value: Any) -> tuple[str, ...] | None:
    names = _names("baselines", value)
    return () if names == (NO_BASELINES,) else names


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


def _flag(option: str, value: Any) -> None:
    if not isinstance(value, bool):
        raise Refusal(
            f"option.{option}",
            f"{option}={value!r} is neither True nor False",
            fix=f"pass {option}=True or leave it out",
        )


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
