"""A plan as the JSON document that a receipt seals."""

from __future__ import annotations

from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from frtspec.runtime.gating.gates import GateResult
from frtspec.runtime.gating.latency import Latency
from frtspec.runtime.records import SeatRecord, UnitRecord

if TYPE_CHECKING:
    from frtspec.runtime.plan import Plan
    from frtspec.runtime.rungs.kernels import LoadedKernel
    from frtspec.runtime.spec import ImplSpec

Json = dict[str, Any]


def document(plan: Plan) -> Json:
    """The sections of a plan's receipt; see ``receipt.schema.json``."""
    return {
        "created": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "specs": _specs(plan),
        "plan": _plan(plan),
        "environment": plan.environment,
        "metrics": _metrics(plan),
        "costs": plan.costs.to_json(),
        "verdict": _verdict(plan),
    }


def _specs(plan: Plan) -> list[Json]:
    """Every spec that the receipt rests on, once."""
    rows: dict[tuple[str, str], Json] = {}

    def add(kind: str, name: str, version: int | None, spec: Any) -> None:
        rows[kind, f"{name} {version}"] = {
            "kind": kind,
            "name": name,
            "version": version,
            "source_digest": spec.source_digest,
            "contract_digest": spec.contract_digest,
        }

    add("binding", plan.binding.name, None, plan.binding)
    add("scheme", plan.scheme.name, None, plan.scheme)
    for record in plan.seats:
        structure = record.seat.structure
        add("structure", structure.name, structure.version, structure)
        if record.built is not None and record.built.spec.source_digest:
            spec = record.built.spec  # one without a digest is the runtime's, of no spec
            add("impl", f"{spec.name} for {record.seat.target}", spec.version, spec)
    return [rows[key] for key in sorted(rows)]


def _plan(plan: Plan) -> Json:
    binding, calibration = plan.binding, plan.calibration
    return {
        "door": plan.door,
        "host": {
            "class": type(plan.model).__name__,
            "binding": binding.name,
            "package": binding.package,
            "versions": binding.versions,
            "installed": plan.environment["packages"].get(binding.package),
            "text": binding.text,
        },
        "scheme": {"asked": plan.options.scheme, "used": plan.scheme.name},
        "options": plan.options.to_json(),
        "calibration": calibration
        and {
            "samples": calibration.samples,
            "method": calibration.method,
            "percentile": calibration.percentile,
            "judged": calibration.judged,
            "held_out": calibration.held_out,
            "diagnostics": list(calibration.diagnostics),
            "origin": calibration.origin,
            "digest": calibration.digest,
            "runs": calibration.runs,
        },
        "memory": plan.memory.to_json(),
        "seats": [_seat(plan, record) for record in plan.seats],
        "chains": [
            {
                "name": chain.name,
                "wire": chain.wire,
                "seats": list(chain.seats),
                "state": chain.state,
                "reason": chain.reason,
            }
            for chain in plan.chains
        ],
    }


def _seat(plan: Plan, record: SeatRecord) -> Json:
    seat, built = record.seat, record.built
    trail = built.trail if built is not None else record.refusal.trail if record.refusal else ()
    return {
        **seat.facts(),
        "rules": [asdict(ruling) for ruling in record.rules],
        "parameters": record.parameters,
        "decision": record.decision and asdict(record.decision),
        "impl": built.spec.name if built is not None else None,
        "synthetic": {} if built is None else _own_gates(built.spec),
        "rung": built.rung.label if built is not None else None,
        "bands": [asdict(use) for use in built.bands] if built is not None else [],
        "kernels": [_kernel(used) for used in built.kernels] if built is not None else [],
        "trail": [asdict(row) for row in trail],
        "cadence": seat.cadence,
        "bytes_added": built.bytes_added if record.state == "bound" and built else None,
        "weights": plan.watch.marks.get(seat.name, {}),
        "precision": plan.precision_spec[seat.name],
    }


def _kernel(used: LoadedKernel) -> Json:
    return {
        "package": used.package,
        "version": used.version,
        "origin": used.origin,
        "digest": used.digest,
    }


def _own_gates(spec: ImplSpec) -> Json:
    """What the gate harness holds the impl to in place of the structure's own bounds."""
    return {kind: [asdict(bound) for bound in bounds] for kind, bounds in spec.gates.items()}


def _metrics(plan: Plan) -> Json:
    noise = plan.noise
    return {
        "output_kind": plan.output_kind,
        "noise": noise
        and {
            "bit_equal": noise.bit_equal,
            "metrics": noise.metrics,
            "note": noise.note,
            "variations": [asdict(variation) for variation in noise.variations],
        },
        "seats": {r.name: [_gate(result) for result in r.gates] for r in plan.seats},
        "units": [_unit(unit) for unit in plan.units],
        "unions": [_unit(unit) for unit in plan.unions],
        "coverage": {
            "total": plan.coverage.total,
            "by_state": plan.coverage.by_state,
            "rest": dict(plan.coverage.rest),
        },
    }


def _gate(result: GateResult) -> Json:
    return {
        "gate": result.gate,
        "verdict": result.verdict,
        "reason": result.reason,
        "metrics": dict(result.metrics),
        "bounds": [asdict(bound) for bound in result.bounds],
        "also": {name: dict(values) for name, values in result.also.items()},
        "notes": list(result.notes),
        "label": result.label,
        "calls": [{"call": row.call, "metrics": dict(row.metrics)} for row in result.calls],
    }


def _unit(unit: UnitRecord) -> Json:
    speed: Latency | None = unit.latency
    return {
        "name": unit.name,
        "kind": unit.kind,
        "seats": list(unit.seats),
        "host": _gate(unit.host) if unit.host is not None else None,
        "latency": asdict(speed) if speed is not None else None,
        "trials": [
            {"without": list(row.without), "verdict": row.verdict, "reason": row.reason}
            for row in unit.trials
        ],
    }


def _verdict(plan: Plan) -> Json:
    def judged(unit: UnitRecord) -> Json:
        return {"name": unit.name, "verdict": unit.verdict, "reason": unit.reason}

    return {
        "summary": "attached" if plan.bound else "nothing attached",
        "counts": plan.counts,
        "seats": {record.name: _state(record) for record in plan.seats},
        "units": [judged(unit) for unit in plan.units],
        "unions": [judged(unit) for unit in plan.unions],
    }


def _state(record: SeatRecord) -> Json:
    fault = record.failure
    return {
        "state": record.state,
        "code": record.code,
        "reason": record.reason,
        "fix": record.fix,
        "failure": fault
        and {"what": fault.what, "exception": fault.exception, "traceback": fault.traceback},
    }
