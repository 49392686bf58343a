"""The two doors: ``attach`` judges before it activates, ``build`` binds without judging.

Both run the untouched host first, and change nothing on it before the one
transaction that activates. Whatever fails puts everything back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from torch import nn

from frtspec.runtime.activation import activate
from frtspec.runtime.calibration import measuring
from frtspec.runtime.calibration.ranks import Ranks
from frtspec.runtime.gating import perseat
from frtspec.runtime.gating.judge import judge
from frtspec.runtime.hosts.census import counted
from frtspec.runtime.options import AttachOptions, BuildOptions, read
from frtspec.runtime.plan import Plan
from frtspec.runtime.records import SeatRecord
from frtspec.runtime.rungs import binding as building
from frtspec.runtime.seats import swap
from frtspec.runtime.session import Session
from frtspec.runtime.spec import HostBinding

Forward = Callable[..., Any] | Sequence[Callable[[], Any]]


def attach(
    binding: HostBinding, model: nn.Module, forward: Forward, **options: Unpack[AttachOptions]
) -> Plan:
    """Find the seats, calibrate, gate, and activate what holds.

    model    the host, in eval mode; nothing on it changes before activation
    forward  runs the host once: ``forward()``, ``forward(obs)`` with ``observations``,
             or a list of thunks, one a sample
    options  see ``AttachOptions``

    Returns a Plan, also when nothing is bound (unless ``strict``). Raises Refusal when the
    host as a whole is not one that can be attached: wrong class or version, training mode,
    options that make no sense, no samples, an output that can't be judged, a calibration
    that is not this host's.
    """
    asked, sources = read("attach", options)
    ranks = Ranks(sources.group)
    with ranks.together():
        session = Session.open(binding, model, forward, asked, sources, ranks)
        chosen: list[SeatRecord] = []
        with swap.undone_on_error(model):
            if session.open_records():
                measuring.run_untouched(session)
                measuring.calibrate(session, judge=True)
                with counted(model):
                    perseat.check_references(session)
                    building.bind(session)
                perseat.judge_seats(session)
                chosen = judge(session)
            session.agree(chosen)
            return session.agreed(activate(session, chosen, "attach"))


def build(
    binding: HostBinding, model: nn.Module, forward: Forward, **options: Unpack[BuildOptions]
) -> Plan:
    """Calibrate and bind without judging: every seat that binds is active.

    No gate decides and nothing is compared with the untouched host; the plan and its
    receipt say so. Options are ``BuildOptions``, errors those of ``attach``.
    """
    asked, sources = read("build", options)
    ranks = Ranks(sources.group)
    with ranks.together():
        session = Session.open(binding, model, forward, asked, sources, ranks)
        with swap.undone_on_error(model):
            if session.open_records():
                measuring.calibrate(session, judge=False)
                with counted(model):
                    building.bind(session)
            session.agree(session.open_records())
            return session.agreed(activate(session, session.open_records(), "build"))
