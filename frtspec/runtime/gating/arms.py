"""The form in which the host runs while it is judged: the one it will be deployed in.

    eager      as it is called
    compiled   all of ``forward`` under ``torch.compile``
    captured   all of ``forward`` as one CUDA graph, replayed

Both sides of a comparison run in the same form. A form that the host can't take is a
refusal that says why; CUDA stays usable.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import torch

from frtspec.runtime.environment import device_is_lost
from frtspec.runtime.errors import Refusal
from frtspec.runtime.observation import samples
from frtspec.runtime.observation.samples import Thunk

WARMUP = 3
"""Calls on a side stream before a capture, so that what allocates lazily has done so."""


def check_form(form: str, device: torch.device) -> None:
    """Raises Refusal ``option.form`` for a form that this device has not."""
    if form == "captured" and device.type != "cuda":
        raise Refusal(
            "option.form",
            f"form='captured' is a CUDA graph, and the host is on {device.type}",
            fix="use form='eager' or form='compiled', or move the model to a CUDA device",
        )


class Runner:
    """Runs samples of the host in one form, as the host is while the first one runs.

    One runner is one side of a comparison: what it compiles or captures is of its own, so
    that the other side neither reuses it nor makes it compile again.
    """

    def __init__(self, form: str, device: torch.device) -> None:
        check_form(form, device)
        self.form, self.device = form, device
        self._compiled: Callable[[Thunk], Any] | None = None
        self._graphs: dict[int, tuple[Thunk, Any, Any]] = {}

    def __call__(self, thunk: Thunk) -> Any:
        """What ``thunk`` returns. A captured output is overwritten by the next replay.

        Raises Refusal ``form.compiled`` or ``form.captured`` where the host can't run so.
        """
        if self.form == "eager":
            return samples.run(thunk)
        try:
            return self._compile(thunk) if self.form == "compiled" else self._replay(thunk)
        except Refusal:
            raise
        except Exception as error:  # the compiler's own kinds, and CUDA's: told, whole
            if device_is_lost(error) and not _usable(self.device):
                raise
            raise Refusal(
                f"form.{self.form}",
                f"the host can't run {self.form}: {_cause(error)}",
                fix="let forward hold only what this form can (no data-dependent branch, no"
                " copy from the host in a capture), or judge with form='eager'",
            ) from error

    def _compile(self, thunk: Thunk) -> Any:
        if self._compiled is None:
            self._compiled = torch.compile(_own_code(_call))
        with torch.no_grad():
            return self._compiled(thunk)

    def _replay(self, thunk: Thunk) -> Any:
        held = self._graphs.get(id(thunk))
        if held is None:
            held = self._graphs[id(thunk)] = (thunk, *_capture(thunk, self.device))
        _, graph, output = held
        graph.replay()
        return output


def _usable(device: torch.device) -> bool:
    """Whether the device still computes. A capture that was broken off reports as CUDA errors
    do that nothing runs after; this one is over with the capture."""
    try:
        torch.cuda.synchronize(device)
        return bool(torch.ones(1, device=device).sum().item() == 1)
    except RuntimeError:
        return False


def _cause(error: BaseException) -> str:
    """What was raised first, and where: ending a broken capture raises once more, and says
    nothing of why it broke."""
    while error.__context__ is not None:
        error = error.__context__
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if f"{os.sep}torch{os.sep}" not in f.filename]
    where = (own or frames)[-1:]
    at = f" (in {where[0].name}, {Path(where[0].filename).name}:{where[0].lineno})" if where else ""
    return f"{type(error).__name__}: {error}{at}"


def _call(thunk: Thunk) -> Any:
    return thunk()


def _own_code(function: Any) -> Any:
    """The same function with a code object of its own, which is what compiled entries (and
    the limit on how many) belong to."""
    return FunctionType(function.__code__.replace(), function.__globals__, function.__name__)


def _capture(thunk: Thunk, device: torch.device) -> tuple[Any, Any]:
    with torch.no_grad(), torch.cuda.device(device):
        side = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(side):
            for _ in range(WARMUP):
                thunk()
        torch.cuda.current_stream(device).wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            output = thunk()
    return graph, output
