"""Doors for a live model that no package was generated for.

The model is scanned, the draft binding is compiled in memory, and ``runtime.attach`` does
the rest: the same seats, gates and refusals as through a generated package. The text of
the binding goes into the plan and its receipt, and can be saved as a `.frt` file.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Unpack

from torch import nn

from frtspec import runtime as rt
from frtspec.live.inmemory import SpecErrors, bindings_of
from frtspec.live.scan import ScanResult, scan
from frtspec.runtime.errors import Refusal
from frtspec.runtime.observation import samples
from frtspec.runtime.options import AttachOptions, BuildOptions, read
from frtspec.runtime.plan import Plan
from frtspec.runtime.session import check_eval
from frtspec.runtime.spec import HostBinding

KEPT_BINDINGS = 16
"""Compiled drafts that are kept: attaching to the same model again compiles nothing."""


def attach(model: nn.Module, forward: Any, **options: Unpack[AttachOptions]) -> Plan:
    """Scans the model, compiles what it found, and attaches gated.

    ``model``, ``forward`` and the options are those of ``runtime.attach``; the scan runs the
    host on the first sample. ``plan.binding.text`` is the binding that was used, the receipt
    has it too, and ``plan.save_binding(path)`` writes it.

    Raises Refusal as ``runtime.attach`` does, and ``scan.nothing`` where no structure of the
    catalog sits on the model, with what was left out and why.
    """
    read("attach", options)
    binding, rest = _scanned(model, forward, options)
    return rt.attach(binding, model, forward, **rest)


def build(model: nn.Module, forward: Any, **options: Unpack[BuildOptions]) -> Plan:
    """As ``attach``, and binds without judging; see ``runtime.build``."""
    read("build", options)
    binding, rest = _scanned(model, forward, options)
    return rt.build(binding, model, forward, **rest)


def _scanned(
    model: nn.Module, forward: Any, options: Mapping[str, Any]
) -> tuple[HostBinding, dict[str, Any]]:
    """The binding of a live model, and the options with the sample that the scan ran on put
    back in front of the observations."""
    check_eval(model)
    first, given = _first(forward, dict(options))
    found = scan(model, lambda: samples.run(first))
    if not found.seats:
        raise Refusal(
            "scan.nothing",
            f"no structure of the catalog sits on this {type(model).__name__}: {_summary(found)}",
            fix="`frtspec scan` tells every module; a structure of your own can be declared",
        )
    return _compiled(found.binding), given


def _first(forward: Any, options: dict[str, Any]) -> tuple[samples.Thunk, dict[str, Any]]:
    observations: Iterable[Any] | None = options.get("observations")
    if observations is None:
        return samples.calibration(forward).first, options
    source = iter(samples.items(observations, "observations"))
    taken = list(_one(source))
    first = samples.calibration(forward, taken).first
    return first, {**options, "observations": chain(taken, source)}


def _one(source: Iterable[Any]) -> Iterable[Any]:
    for item in source:
        yield item
        return


def _summary(found: ScanResult) -> str:
    reasons = list(dict.fromkeys(f"{row.path}: {row.reason}" for row in found.left_out))
    told = "; ".join(reasons[:3])
    return told + (f"; and {len(reasons) - 3} more" if len(reasons) > 3 else "") or "it is empty"


@lru_cache(maxsize=KEPT_BINDINGS)
def _compiled(text: str) -> HostBinding:
    """The one binding of a text, with the text. Raises Refusal ``scan.draft`` where the
    scanner wrote what the compiler refuses."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "scanned.frt")
        path.write_text(text)
        try:
            (binding,) = bindings_of(path).values()
        except SpecErrors as errors:
            first = errors.diagnostics[0]
            raise Refusal(
                "scan.draft",
                f"the draft binding can't be compiled: {first.code} {first.message}",
                fix="save it with `frtspec scan`, mend it, and verify it",
            ) from errors
    return dataclasses.replace(binding, text=text)


__all__ = ["attach", "build"]
