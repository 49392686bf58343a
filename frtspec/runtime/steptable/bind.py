"""Binding a seat by a step table: which projection it is of, which steps calibration saw.

The mechanism is the structure's: it has rules ``for step_table`` on how many steps there may be
and how far apart. The caller asks for it with ``step_tables=True``; a scheme's impl would
compute the projection at each call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as nnf

from frtspec.dims import Measured
from frtspec.runtime.eligibility import eligible
from frtspec.runtime.eligibility.deciding import Decision
from frtspec.runtime.errors import Refusal, TrailRow
from frtspec.runtime.gating.gates import GateResult, boundary_of
from frtspec.runtime.hosts import facts
from frtspec.runtime.hosts.host import seat_modules, submodule
from frtspec.runtime.rungs.impl import BoundImpl
from frtspec.runtime.rungs.ladder import BoundSeat
from frtspec.runtime.seats.calls import Context
from frtspec.runtime.seats.forms import Form, Forms
from frtspec.runtime.seats.guard import Band, Contract, Guard
from frtspec.runtime.seats.ledger import Counter
from frtspec.runtime.spec import ImplSpec, RungSpec, Seat, Weight
from frtspec.runtime.steptable.table import Locator, Table, TableModule

if TYPE_CHECKING:
    from frtspec.runtime.observation.observe import Observation

NAME = "step_table"
TORCH = RungSpec("torch", run="run_torch")
BEFORE: Mapping[str, Callable[[Tensor], Tensor]] = {"none": lambda cond: cond, "silu": nnf.silu}
"""What a host does to the conditioning before the projection, by ``cond_activation``."""


class TableImpl(BoundImpl):
    """Stands for an impl in what is told of a seat; the seat's module does the work."""

    def __init__(self, seat: Seat, host: nn.Module, table: Table) -> None:
        super().__init__()
        self.__dict__.update(_host=host, _table=table)
        structure = seat.structure
        self.SPEC = ImplSpec(  # type: ignore[misc]
            name=NAME,
            structure=structure.name,
            structure_version=structure.version,
            seam=None,
            version=1,
            source_digest="",
            contract_digest="",
            scales={},
            admits={},
            only={},
            rungs=(TORCH,),
        )

    def run_torch(self, *inputs: Tensor) -> Any:
        found = self.__dict__["_table"].find(*inputs)
        return found if isinstance(found, Tensor) else self.__dict__["_host"].forward(*inputs)


def content_point(seat: Seat) -> str | None:
    """The point whose values are the steps; None where the structure knows no step table."""
    for rule in seat.structure.rules:
        if rule.form == NAME and isinstance(rule.test, Measured):
            return rule.test.of
    return None


def decide(seat: Seat) -> Decision:
    return Decision("use", "its projection is looked up by step: step_tables=True", NAME)


def projection(model: nn.Module, seat: Seat) -> tuple[str, nn.Linear]:
    """The one linear inside the seat's module. Raises Refusal ``table.projection``."""
    weights = [w for v in seat.slots.values() for w in ((v,) if isinstance(v, Weight) else v)]
    owners = dict.fromkeys(w.path.rpartition(".")[0] for w in weights if w.path is not None)
    found = {path: submodule(model, path) for path in owners}
    linears = [(path, m) for path, m in found.items() if isinstance(m, nn.Linear)]
    if len(linears) != 1 or not linears[0][0].startswith(f"{seat.path}."):
        raise Refusal(
            "table.projection",
            f"{seat.path} has {len(linears)} linears of its own, where a table is of one",
            fix="nothing to mend: the host's own code runs here",
            seat=seat.name,
        )
    return linears[0]


@torch.no_grad()
def bind_table(
    model: nn.Module,
    seat: Seat,
    seen: Observation,
    locators: list[Locator],
    *,
    rungs: Sequence[str] | None = None,
    on_guard_fail: str = "fallback",
) -> BoundSeat:
    """The table of a seat's projection, computed by the host's own module.

    locators  those of other seats; one of the same values is shared, a new one is added

    Raises Refusal: what calibration found, ``table.*``, ``host.*``, ``rung.none``.
    """
    if seat.name in seen.refusals:
        raise seen.refusals[seat.name]
    if rungs is not None and TORCH.kind not in rungs:
        row = TrailRow(TORCH.label, "rung.not_asked", "another rung was asked for", "not_tried")
        raise Refusal(
            "rung.none",
            f"a table is read by torch (asked for: {', '.join(rungs)})",
            fix='add "torch" to rungs=',
            seat=seat.name,
            trail=(row,),
        )
    form = seen.form(seat.name)
    eligible.check_modules(model, seat, seat_modules(model, seat))
    facts.check_expects(model, seat, form)
    path, host = projection(model, seat)
    conds = _steps(seat, seen)
    if any(context.autocast is not None for context in form.out_dtypes):
        raise _cannot(seat, "autocast", "it runs under autocast, and a table is of one dtype")
    locator = next((one for one in locators if one.same(conds)), None)
    added = 0
    if locator is None:
        locator = Locator(conds)
        locators.append(locator)
        added = locator.nbytes
    table = Table.of(locator, [host.forward(cond) for cond in locator.conds])
    first, value = locator.conds[0], table.values[0]
    contract = Contract((first.shape[-1],), first.device, {Context(first.dtype, None): value.dtype})
    impl = TableImpl(seat, host, table).on(TORCH)
    forms = Forms(contract, (Form(Band(), impl),))
    guard = Guard(contract, {path: host})
    label = f"{NAME} of {len(table.values)} steps"
    counter = Counter(seat.name, label, on_guard_fail)
    module = TableModule(host, forms, guard, counter, table=table)
    trail = (TrailRow(TORCH.label, "rung.bound", f"{len(table.values)} steps seen", "bound"),)
    bytes_added = table.nbytes + added
    return BoundSeat(
        seat, impl, TORCH, trail, {path: module}, forms, guard, counter, bytes_added, table=table
    )


def _steps(seat: Seat, seen: Observation) -> list[Tensor]:
    """The distinct values that the projection is handed, the same in every sample kept.

    Raises Refusal ``table.steps`` where samples differ: then the conditioning is no matter of the
    step alone, or the loop has another number of steps each time.
    """
    point = content_point(seat)
    assert point is not None
    samples = [s.contents for s in seen.values(seat.name, point)]
    if not samples or any(not contents for contents in samples[:1]):
        raise _cannot(seat, "steps", f"{point} was not seen whole")
    kept = [_distinct(contents) for contents in samples if contents]
    for other in kept[1:]:
        if len(other) != len(kept[0]):
            raise _cannot(
                seat, "steps", f"one sample has {len(kept[0])} steps, another {len(other)}"
            )
        if not all(any(_same(a, b) for b in kept[0]) for a in other):
            what = f"{point} has other values in another sample: it is not of the step alone"
            raise _cannot(seat, "steps", what)
    activation = str(seat.variants.get("cond_activation", "none"))
    if activation not in BEFORE:
        raise _cannot(seat, "activation", f"cond_activation {activation} is none a table knows")
    return [BEFORE[activation](cond) for cond in kept[0]]


def _distinct(values: Sequence[Tensor]) -> list[Tensor]:
    found: list[Tensor] = []
    for value in values:
        if not any(_same(value, other) for other in found):
            found.append(value)
    return found


def _same(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and torch.equal(a, b)


def _cannot(seat: Seat, code: str, what: str) -> Refusal:
    return Refusal(
        f"table.{code}",
        f"{seat.path} can't be looked up by step: {what}",
        fix="calibrate on the whole loop, with the steps that are deployed, or leave "
        "step_tables= out",
        seat=seat.name,
    )


@torch.no_grad()
def judged(bound: BoundSeat, label: str) -> list[GateResult]:
    """The seat's own gates: every row against the host's own projection, computed again."""
    assert bound.table is not None
    (host,) = bound.guard.hosts.values()
    rows = zip(bound.table.locator.conds, bound.table.values, strict=True)
    pairs = [({"style": host.forward(cond)}, {"style": value}) for cond, value in rows]
    return [
        GateResult("parity", "not_applicable", "a table holds what the host computed"),
        boundary_of(bound.seat.structure, pairs, label=label),
    ]
