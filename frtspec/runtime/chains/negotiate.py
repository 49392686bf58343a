"""Which declared chains can run as one unit: both ends bound, every fact shown.

A chain that can't is no fault: its ends are bound as they would be without it, and the reason
is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from frtspec.runtime.chains.pair import (
    ConsumerModule,
    ConsumerSibling,
    Pair,
    ProducerModule,
    WiredForms,
)
from frtspec.runtime.chains.wire import FORMATS
from frtspec.runtime.hosts.host import submodule
from frtspec.runtime.hosts.links import Proof
from frtspec.runtime.hosts.siblings import SiblingModule
from frtspec.runtime.records import SeatRecord
from frtspec.runtime.rungs.ladder import BoundSeat
from frtspec.runtime.seats.seatmodule import SeatModule
from frtspec.runtime.spec import Chain, Route, SeatGroup


@dataclass(frozen=True)
class ChainRecord:
    """What became of a declared chain.

    state   ``joined``: codes go over it while both ends are attached; ``apart``: each end runs
            for itself, because of ``reason``
    seats   producer and consumer
    """

    name: str
    wire: str
    seats: tuple[str, str]
    state: str
    reason: str
    pair: Pair | None = field(default=None, repr=False)

    @property
    def carried(self) -> int:
        """Outputs that went over in codes so far."""
        return 0 if self.pair is None else self.pair.carried

    @property
    def broken(self) -> str:
        """The fact that a call broke, and how; empty while none did."""
        if self.pair is None or self.pair.broken is None:
            return ""
        return ": ".join(self.pair.broken)


def negotiate(
    model: nn.Module,
    records: Sequence[SeatRecord],
    declared: Sequence[Chain | SeatGroup],
    proofs: Sequence[Proof],
) -> tuple[ChainRecord, ...]:
    """Joins the chains that can be; their ends' modules are exchanged for such that send and
    take codes. Seats are bound, nothing is attached yet."""
    by_name = {record.name: record for record in records}
    chains = [link for link in declared if isinstance(link, Chain)]
    return tuple(_negotiate(model, by_name, chain, proofs) for chain in chains)


def _negotiate(
    model: nn.Module, records: Mapping[str, SeatRecord], chain: Chain, proofs: Sequence[Proof]
) -> ChainRecord:
    seats = (chain.producer, chain.consumer)
    ends = [records[name] for name in seats if name in records]
    reason = _missing(chain, records) or _unproven(chain, proofs) or _unbound(chain, ends)
    if reason:
        return ChainRecord(chain.name, chain.wire, seats, "apart", reason)
    producer, consumer = (record.bound for record in ends)
    assert producer is not None and consumer is not None
    found = _scale(producer, consumer, chain.wire)
    if isinstance(found, str):
        return ChainRecord(chain.name, chain.wire, seats, "apart", found)
    pair = Pair(chain.name, chain.wire, found, (producer.counter, consumer.counter))
    _join(pair, producer, consumer)
    pair.places = [
        (submodule(model, path.rpartition(".")[0])._modules, path.rpartition(".")[2], module)
        for bound in (producer, consumer)
        for path, module in bound.modules.items()
    ]
    return ChainRecord(chain.name, chain.wire, seats, "joined", "every fact is shown", pair)


def writers(declared: Sequence[Chain | SeatGroup], proofs: Sequence[Proof]) -> Mapping[str, Chain]:
    """Producer -> its chain, of the chains whose facts are shown and that have a form of their
    own for it. Such a seat is built after its consumer."""
    chains = [link for link in declared if isinstance(link, Chain)]
    return {c.producer: c for c in chains if c.form is not None and not _unproven(c, proofs)}


def written(route: Route, chain: Chain | None, records: Sequence[SeatRecord]) -> Route:
    """The route of a producer whose consumer is bound: to the form that writes the wire."""
    if chain is None or not any(r.name == chain.consumer and r.bound for r in records):
        return route
    return replace(route, stats={}, impl=chain.form, params={}, keep=None, keep_when=None)


def settled(
    chains: Sequence[ChainRecord], records: Sequence[SeatRecord]
) -> tuple[ChainRecord, ...]:
    """The chains as they are once every seat is settled: both ends have to be attached."""
    states = {record.name: record for record in records}

    def now(chain: ChainRecord) -> ChainRecord:
        ends = zip(("producer", "consumer"), chain.seats, strict=True)
        if chain.state != "joined":  # may name a seat that this model has none of
            return chain
        gone = [(end, states[name]) for end, name in ends if states[name].state != "bound"]
        if not gone:
            return chain
        end, record = gone[0]
        reason = f"its {end} is {record.state}: {record.reason}"
        return replace(chain, state="apart", reason=reason, pair=None)

    return tuple(now(chain) for chain in chains)


def _missing(chain: Chain, records: Mapping[str, SeatRecord]) -> str:
    for end, name in (("producer", chain.producer), ("consumer", chain.consumer)):
        if name not in records:
            return f"its {end} {name} is no seat of this model"
    return ""


def _unproven(chain: Chain, proofs: Sequence[Proof]) -> str:
    mine = [proof for proof in proofs if proof.link == chain.name]
    missing = [proof for proof in mine if not proof.shown]
    if missing:
        return f"{missing[0].fact} is not shown: {missing[0].what}"
    return "" if mine else "calibration did not see both of its seats"


def _unbound(chain: Chain, ends: Sequence[SeatRecord]) -> str:
    for end, record in zip(("producer", "consumer"), ends, strict=True):
        if record.bound is None:
            return f"its {end} runs on the host ({record.code or record.state}): {record.reason}"
    if chain.wire not in FORMATS:
        return f"nothing makes codes in {chain.wire}: a wire is of {', '.join(FORMATS)}"
    producer = ends[0].bound
    if producer is not None and (producer.seat.form != "swap" or producer.bands):
        return "its producer is no module that is replaced whole, for every row count"
    return ""


def _scale(producer: BoundSeat, consumer: BoundSeat, wire: str) -> Tensor | str:
    """The scale that the consumer reads its input with: under it, codes give the very bits
    that the values give. A text says why there is none."""
    spec = consumer.impl.SPEC
    names = [n for n, s in spec.scales.items() if (s.kind, s.per) == (wire, "tensor")]
    if not names:
        return f"{spec.name} has no static scale of its input in {wire}"
    (width, *more) = consumer.forms.contract.widths
    if more:
        return f"its consumer takes {1 + len(more)} inputs"
    scales: list[Tensor] = [getattr(consumer.impl, name) for name in names]
    for scale in scales:
        if all(_reads(form.impl, scale, wire, width) for form in consumer.forms.forms):
            return scale
    return f"{spec.name} does more with its input than to read it in {wire}"


@torch.no_grad()
def _reads(impl: object, scale: Tensor, wire: str, width: int) -> bool:
    """Whether an impl gives the same bits for codes as for the values that they stand for."""
    generator = torch.Generator().manual_seed(0)
    rows = torch.randn(32, width, generator=generator).to(scale.device) * (scale * 150)
    codes = FORMATS[wire](rows, scale)
    found, wanted = (_tensors(impl.run(x)) for x in (codes, codes.float() * scale))  # type: ignore[attr-defined]
    return all(torch.equal(one, other) for one, other in zip(found, wanted, strict=True))


def _tensors(result: object) -> tuple[Tensor, ...]:
    return (result,) if isinstance(result, Tensor) else tuple(result)  # type: ignore[arg-type]


def _join(pair: Pair, producer: BoundSeat, consumer: BoundSeat) -> None:
    producer.modules = {
        path: ProducerModule(module, pair) for path, module in producer.modules.items()
    }
    forms = WiredForms(consumer.forms.contract, consumer.forms.forms)
    consumer.modules = {
        path: _reading(module, forms, pair) for path, module in consumer.modules.items()
    }


def _reading(module: SeatModule, forms: WiredForms, pair: Pair) -> SeatModule:
    kind = ConsumerSibling if isinstance(module, SiblingModule) else ConsumerModule
    reading = kind(module, pair)
    reading.__dict__["_frt"] = replace(module._frt, forms=forms)
    return reading
