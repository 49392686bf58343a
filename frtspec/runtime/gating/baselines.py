"""What a form has to be faster than: each word of a latency gate, and how its arm is built.

On a host every arm is one of the host's own; here, without a host, the reference stands
for it where it can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from frtspec.runtime.gating.arms import Runner

UNAVAILABLE = "baseline_unavailable"

Arm = Callable[[], Any]


@dataclass(frozen=True)
class Baseline:
    """``build``: the arm, or raises ``LookupError`` with why there is none here. ``form``: the
    untouched host in this form is the arm on a host; None: a host has none."""

    what: str
    build: Callable[[Callable[..., Any], Mapping[str, Any], torch.device], Arm]
    form: str | None = None


def arm(
    name: str,
    reference: Callable[..., Any],
    given: Mapping[str, Any],
    device: torch.device,
) -> Arm | str:
    """One arm, ready to be timed; or ``baseline_unavailable: why``."""
    try:
        return BASELINES[name].build(reference, given, device)
    except LookupError as why:
        return f"{UNAVAILABLE}: {why.args[0]}"


def _unfused(reference: Callable[..., Any], given: Mapping[str, Any], device: torch.device) -> Arm:
    return lambda: reference(**given)


def _compiled(reference: Callable[..., Any], given: Mapping[str, Any], device: torch.device) -> Arm:
    """The reference under torch.compile, compiled by one call."""
    try:
        compiled = torch.compile(reference)
        compiled(**given)
    except Exception as error:  # no compiler, no backend: the reason is kept
        what = str(error).strip().splitlines()[0]
        raise LookupError(f"torch.compile raised {type(error).__name__}: {what}") from error
    return lambda: compiled(**given)


def _vendor(reference: Callable[..., Any], given: Mapping[str, Any], device: torch.device) -> Arm:
    raise LookupError("no library of the device's vendor declares this region")


def _host_chain(
    reference: Callable[..., Any], given: Mapping[str, Any], device: torch.device
) -> Arm:
    raise LookupError("there is no host here, and its own modules are the arm")


BASELINES: Mapping[str, Baseline] = {
    "torch_compile": Baseline("the region under torch.compile", _compiled, "compiled"),
    "unfused_chain": Baseline("the reference's ops one by one", _unfused, "eager"),
    "vendor": Baseline("the vendor library's form of the region", _vendor),
    "host_chain": Baseline("the host's own modules one after the other", _host_chain, "eager"),
}
"""Word -> what it is and how it is built; the same words as the compiler's table."""


def on_host(
    name: str, runner: Callable[[str], Runner], asked: Sequence[str] | None = None
) -> Runner | str:
    """The arm of a baseline on a live host: the whole untouched host in some form; or why
    there is none.

    runner  form -> the session's runner of the untouched host in that form
    asked   words of the baselines to time; None: all
    """
    if asked is not None and name not in asked:
        return f"not asked for: baselines= names {', '.join(asked) or 'none'}"
    form = BASELINES[name].form
    if form is None:
        return "no library of the device's vendor declares this host"
    return runner(form)
