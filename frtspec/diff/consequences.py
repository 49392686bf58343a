"""What follows from a comparison: who pins what moved, and what becomes of receipts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from frtspec.diag.source import Span
from frtspec.diff.compare import Comparison, Event, Pair, judge
from frtspec.diff.facts import Fact, Subject
from frtspec.diff.impl import rung_key
from frtspec.diff.rules import Level
from frtspec.diff.sides import Key
from frtspec.ir import decl
from frtspec.ir.decl import Program


@dataclass(frozen=True)
class Pin:
    """``by`` names what it pins, at ``span``."""

    by: Subject
    to: Key
    span: Span


def pins(program: Program) -> Iterator[Pin]:
    """Every place where a declaration names another of a certain version."""
    for binding in program.bindings.values():
        by = Subject("binding", binding.name)
        for group in binding.groups:
            yield from (Pin(by, ("structure", *s.structure), s.span) for s in group.seats)
        yield from (Pin(by, ("pipeline", *u.pipeline), u.span) for u in binding.pipelines)
    for impl in program.impls.values():
        by = Subject("impl", impl_name(impl), impl.version)
        yield Pin(by, ("structure", *impl.structure), impl.origin.span)
    for structure in program.structures.values():
        by = Subject("structure", structure.name, structure.version)
        for slot in structure.slots:
            if slot.inner is not None:
                yield Pin(by, ("structure", slot.inner.name, slot.inner.version), slot.span)
    for pipeline in program.pipelines.values():
        by = Subject("pipeline", pipeline.name, pipeline.version)
        for name, version in pipeline.embeds:
            yield Pin(by, ("structure", name, version), pipeline.origin.span)
    yield from _of_schemes(program)


def _of_schemes(program: Program) -> Iterator[Pin]:
    for scheme in program.schemes.values():
        by = Subject("scheme", scheme.name)
        for route in scheme.routes:
            target = (route.structure, route.structure_version)
            yield Pin(by, ("structure", *target), route.span)
            impl = program.impls.get((*target, route.seam, route.use or ""))
            if impl is not None:
                yield Pin(by, ("impl", impl_name(impl), impl.version), route.span)
    if program.auto is not None:
        for _, name in program.auto.rows:
            yield Pin(Subject("auto", "auto"), ("scheme", name, 0), program.auto.origin.span)


def impl_name(impl: decl.Impl) -> str:
    """The name that a lock's row has: ``fp8_static for decoder_ffn.mlp v1``."""
    seam = f".{impl.seam}" if impl.seam else ""
    return f"{impl.name} for {impl.structure[0]}{seam} v{impl.structure[1]}"


# ---------------------------------------------------------------- consequences


@dataclass(frozen=True)
class ReceiptFate:
    """What becomes of one receipt.

    fate     ``holds``: all it cites is what it was; ``judged``: only gates moved, and its
             figures were held against them without a device; ``orphaned``: it cites what
             is no more; ``damaged``: it does not verify
    passed   of ``judged``: whether every seat has figures for the new bounds and meets them
    """

    file: str
    fate: str
    reasons: tuple[str, ...] = ()
    passed: bool | None = None


@dataclass(frozen=True)
class Consequences:
    """``requalify``: declaration -> what has to be measured again, and why; ``migrate``: who
    still pins the older version of what has a newer one."""

    requalify: Mapping[Subject, tuple[str, ...]] = field(default_factory=dict)
    migrate: Mapping[Subject, tuple[Subject, ...]] = field(default_factory=dict)
    receipts: tuple[ReceiptFate, ...] = ()


def consequences(found: Comparison, receipts: Sequence[Mapping[str, Any]] = ()) -> Consequences:
    """``receipts``: verified or not, as ``{"file": …, "receipt": … or None, "problems": …}``."""
    by = list(pins(found.new.program))
    requalify: dict[Subject, list[str]] = {}
    for event in found.events:
        subject = event.fact.subject
        moves = event.rule.requalify or (
            event.rule.level == Level.VERSION and not event.pair.bumped and event.pair.old
        )
        if not moves or event.pair.bumped:
            continue
        why = f"{event.fact.rule} of {subject}"
        own = [subject] if subject.kind in ("binding", "impl") else []
        for who in dict.fromkeys((*own, *_pinned_by(subject, by))):
            reasons = requalify.setdefault(who, [])
            if why not in reasons:
                reasons.append(why)
    migrate = {
        pair.subject: tuple(dict.fromkeys(_pinned_by(_before(pair), by)))
        for pair in found.pairs
        if pair.bumped
    }
    return Consequences(
        {who: tuple(why) for who, why in requalify.items()},
        {subject: who for subject, who in migrate.items() if who},
        tuple(_fate(item, found) for item in receipts),
    )


def _before(pair: Pair) -> Subject:
    version = getattr(pair.old, "version", None)
    return Subject(pair.subject.kind, pair.subject.name, version)


def _pinned_by(subject: Subject, by: Iterable[Pin]) -> Iterator[Subject]:
    """Whoever names it, and whoever names those: a binding gets an impl through a scheme."""
    wanted, listed = {(subject.kind, subject.name, subject.version or 0)}, list(by)
    seen: set[Subject] = set()
    while wanted:
        found = [pin for pin in listed if pin.to in wanted and pin.by not in seen]
        seen |= {pin.by for pin in found}
        yield from dict.fromkeys(pin.by for pin in found)
        wanted = {(p.by.kind, p.by.name, p.by.version or 0) for p in found}


# ---------------------------------------------------------------- receipts


def _fate(item: Mapping[str, Any], found: Comparison) -> ReceiptFate:
    receipt = item["receipt"]
    if receipt is None:
        return ReceiptFate(item["file"], "damaged", tuple(item["problems"]))
    moved = {_receipt_key(pair.subject): pair for pair in found.pairs if pair.old is not None}
    lost = {
        _receipt_key(event.fact.subject)
        for event in found.events
        if event.fact.rule.startswith("spec.retired")
    }
    reasons: list[str] = []
    gates: list[Event] = []
    for row in receipt["specs"]:
        key = (row["kind"], row["name"], row["version"] or 0)
        pair = moved.get(key)
        if key in lost:
            reasons.append(f"{row['kind']} {row['name']} is gone")
        elif pair is not None and not pair.bumped and pair.moved:
            if row["contract_digest"] == pair.digests[1]:
                continue
            own = [e for e in found.events if e.pair == pair and e.fact.rule != "version.missing"]
            only = all(e.fact.rule.startswith("gate.") or e.rule.level < Level.VERSION for e in own)
            if only and row["contract_digest"] == pair.digests[0]:
                gates += [e for e in own if e.fact.rule.startswith("gate.")]
            reasons += [] if only else [f"the contract of {pair.subject} moved"]
    if reasons:
        return ReceiptFate(item["file"], "orphaned", tuple(dict.fromkeys(reasons)))
    if not gates:
        return ReceiptFate(item["file"], "holds")
    told, passed = _rejudged(receipt, gates, found)
    return ReceiptFate(item["file"], "judged", told, passed)


def _receipt_key(subject: Subject) -> Key:
    return subject.kind, subject.name, subject.version or 0


def _rejudged(
    receipt: Mapping[str, Any], gates: Iterable[Event], found: Comparison
) -> tuple[tuple[str, ...], bool]:
    """The receipt's own figures against the new bounds, seat by seat."""
    told: list[str] = []
    passed = True
    for event in dict.fromkeys(e.pair.subject for e in gates):
        key = (event.name, event.version or 0)
        structure = found.new.program.structures.get(key)
        for seat in receipt["plan"]["seats"] if structure is not None else ():
            if not _is_of(seat, structure):
                continue
            for kind, metric, op, limit in _bounds(structure, seat):
                figure = _figure(receipt, seat["name"], kind, metric)
                if figure is None:
                    told.append(f"{seat['name']}: no figure of {metric}; it has to run again")
                    passed = False
                    continue
                good = figure >= limit if op == ">=" else figure <= limit
                passed &= good
                if not good:
                    told.append(f"{seat['name']}: {metric} {figure:.6g} is not {op} {limit:g}")
    return tuple(told) or ("every recorded figure meets the new bounds",), passed


def _is_of(seat: Mapping[str, Any], structure: Any) -> bool:
    """A target is ``decoder_ffn.mlp v1``."""
    name, _, version = str(seat["target"]).rpartition(" v")
    return name.split(".")[0] == structure.name and version == str(structure.version)


def _bounds(structure: Any, seat: Mapping[str, Any]) -> Iterator[tuple[str, str, str, float]]:
    for gate in structure.gates:
        if gate.kind == "boundary":
            for metric in gate.metrics:
                if metric.op is not None:
                    yield "boundary", metric.metric, metric.op, float(metric.bound)
    for seam in structure.seams:
        if str(seat["target"]).startswith(f"{structure.name}.{seam.name} "):
            for metric in seam.gates:
                if metric.op is not None:
                    yield "seam", metric.metric, metric.op, float(metric.bound)


def _figure(receipt: Mapping[str, Any], seat: str, kind: str, metric: str) -> float | None:
    for gate in receipt["metrics"]["seats"].get(seat, ()):
        if gate["gate"] == kind and metric in gate["metrics"]:
            return float(gate["metrics"][metric])
    return None


def rungs_lost(found: Comparison, receipts: Sequence[Mapping[str, Any]]) -> list[Event]:
    """Rungs that are gone and on which a host and device rested alone, as receipts show."""
    out = []
    for event in found.events:
        new = event.pair.new
        if event.fact.rule != "ladder.rung.removed" or not isinstance(new, decl.Impl):
            continue
        gone = event.fact.item.partition("rung ")[2].replace('"', "")
        left = {rung_key(rung).replace('"', "") for rung in new.rungs}
        rested: dict[tuple[str, str], set[str]] = {}
        for item in receipts:
            for cell, rung in _cells(item["receipt"], new):
                rested.setdefault(cell, set()).add(rung)
        for (host, device), used in sorted(rested.items()):
            if gone in used and not used & left:
                told = f"{host} on {device} has receipts on {gone} alone"
                about = f"rung {gone} for {host} on {device}"
                places = event.fact.old, event.fact.new
                fact = Fact("ladder.rung.last", event.fact.subject, about, told, *places)
                out.append(judge(fact, event.pair))
    return out


def _cells(receipt: Any, impl: decl.Impl) -> Iterator[tuple[tuple[str, str], str]]:
    """Host and device -> what ran there of the impl."""
    if receipt is None:
        return
    device = str(receipt["environment"]["device"]["name"])
    target = impl_name(impl).partition(" for ")[2]
    for seat in receipt["plan"]["seats"]:
        if seat["impl"] == impl.name and seat["target"] == target and seat["rung"]:
            yield (receipt["plan"]["host"]["class"], device), seat["rung"].partition("@v")[0]
