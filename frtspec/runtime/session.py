"""The state of one run of ``attach`` or ``build``, which its steps share.

    selecting   eligibility.selecting   which seats are looked at further
    measuring   calibration.measuring   the runs of the untouched host
    binding     rungs.binding           packs, rungs, chains
    perseat     gating.perseat          each seat's own gates
    judge       gating.judge            units and their union on the whole host
    activation  activation              the one transaction, and the plan

Hooks come and go with each observation; no step before the judging swaps a module. A step
that concerns one seat settles that seat: a Refusal is an outcome, anything else that is
raised is kept whole as the seat's failure, and the other seats go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from torch import nn

from frtspec.runtime import environment
from frtspec.runtime.calibration.ranks import Ranks
from frtspec.runtime.calibration.source import Source
from frtspec.runtime.chains.negotiate import ChainRecord
from frtspec.runtime.eligibility import schemes, selecting
from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating.arms import Runner, check_form
from frtspec.runtime.gating.outputs import Untouched
from frtspec.runtime.gating.reference import SeatReference
from frtspec.runtime.hosts import host as hosts
from frtspec.runtime.hosts import links
from frtspec.runtime.hosts.coverage import inventory
from frtspec.runtime.memory.store import WeightStore
from frtspec.runtime.observation import observe, samples
from frtspec.runtime.observation.samples import Thunk
from frtspec.runtime.options import Options, Sources
from frtspec.runtime.records import CalibrationRecord, Noise, SeatRecord, UnitRecord
from frtspec.runtime.reporting.costs import Costs
from frtspec.runtime.rungs.rungcache import RungCache
from frtspec.runtime.spec import HostBinding, Route, Seat
from frtspec.runtime.steptable.table import Locator

if TYPE_CHECKING:
    from frtspec.runtime.plan import Plan


class Session:
    """The state that the steps share; made by ``open``."""

    def __init__(
        self,
        binding: HostBinding,
        model: nn.Module,
        stream: samples.Samples,
        held_out: list[Thunk] | None,
        options: Options,
    ) -> None:
        self.binding, self.model, self.options = binding, model, options
        self.stream, self.held_out = stream, held_out
        self.device = environment.device_of(model)
        self.scheme = schemes.resolve(binding, options.scheme, self.device)
        self.parameters = inventory(model)
        self.untouched = Untouched()
        self._runners: dict[str, Runner] = {}
        self.noise: Noise | None = None
        self.calibration: CalibrationRecord | None = None
        self.calibrated: observe.Observation | None = None
        self.judged: observe.Observation | None = None
        self.costs = Costs()
        self.units: list[UnitRecord] = []
        self.unions: list[UnitRecord] = []
        self.records = [SeatRecord(seat) for seat in binding.seats(model)]
        self.references: dict[str, SeatReference] = {}
        self.links: tuple[links.Proof, ...] = ()
        self.chains: tuple[ChainRecord, ...] = ()
        self.source, self.ranks = Source(), Ranks()
        self.rungs: RungCache | None = None
        self.store = WeightStore()
        self.locators: list[Locator] = []

    @staticmethod
    def open(
        binding: HostBinding,
        model: nn.Module,
        forward: Any,
        options: Options,
        sources: Sources,
        ranks: Ranks,
    ) -> Session:
        """Checks everything that concerns the whole host; raises Refusal before touching it."""
        rungs = RungCache.open(sources.decisions)
        binding = hosts.check_host(binding, model)
        check_eval(model)
        stream = samples.calibration(forward, sources.observations, max_samples=options.max_samples)
        apart = samples.held_out(
            sources.held_out,
            forward,
            observed=sources.observations is not None,
            max_samples=options.max_samples,
        )
        session = Session(binding, model, stream, apart, options)
        check_form(options.form, session.device)
        session.ranks, session.rungs = ranks, rungs
        session.untouched = Untouched(sources.output, options.output_kind)
        session.store = sources.checkpoint or WeightStore()
        selecting.select(session)
        places = [record.seat for record in session.records]
        session.source = Source.open(
            sources.calibration, model, binding, session.scheme, places, ranks
        )
        if session.source.key is not None:
            ranks.agree(session.source.key, options)
        session.source.settle(ranks)
        return session

    # ------------------------------------------------------------ the untouched host

    def runner(self, form: str) -> Runner:
        """What runs the untouched host in this form; what it compiles is kept for the session."""
        return self._runners.setdefault(form, Runner(form, self.device))

    @property
    def host_runner(self) -> Runner:
        """The untouched host in the form that will be deployed."""
        return self.runner(self.options.form)

    # ------------------------------------------------------------ seats

    def open_records(self) -> list[SeatRecord]:
        """Seats that nothing has settled yet."""
        return [record for record in self.records if record.open]

    def route(self, seat: Seat) -> Route:
        structure = seat.structure
        return self.scheme.route(structure.name, seat.seam, structure.version, seat.variants)

    def tabled(self, seat: Seat) -> bool:
        """Whether the seat's projection is to be looked up by step."""
        return self.options.step_tables and any(
            rule.form == "step_table" for rule in seat.structure.rules
        )

    def agree(self, chosen: Sequence[SeatRecord]) -> None:
        """Leaves of ``chosen`` only what every rank would activate."""
        if self.ranks.several:
            self.ranks.same_outcome(self.records, chosen)

    def agreed(self, plan: Plan) -> Plan:
        """The plan, once every rank has activated the same seats."""
        self.ranks.same_seats(plan.bound)
        return plan


def check_eval(model: nn.Module) -> None:
    """Raises Refusal ``host.training`` where some module of the model is training."""
    training = [name or "the model" for name, module in model.named_modules() if module.training]
    if training:
        more = f" and {len(training) - 1} more" if len(training) > 1 else ""
        raise Refusal(
            "host.training",
            f"{training[0]}{more} is in training mode: its output is not repeatable",
            fix="call model.eval() first",
        )
