"""Every figure that a gate measured, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from frtspec.runtime.gating.gates import GateResult

if TYPE_CHECKING:
    from frtspec.runtime.plan import Plan


def report(plan: Plan) -> str:
    """Every gate of every seat and unit, with figures and bounds, as text."""
    lines = []
    for record in plan.seats:
        lines.append(f"{record.name}  {record.seat.target}  {record.state}  {record.form}".rstrip())
        if record.decision is not None:
            lines.append(f"  decision   {record.decision.outcome}: {record.decision.reason}")
        for result in record.gates:
            lines += _gate_lines(result)
    for unit in (*plan.units, *plan.unions):
        lines.append(f"{unit.name}  {unit.verdict}")
        if unit.host is not None:
            lines += _gate_lines(unit.host)
        if unit.latency is not None:
            lines.append(f"  speed      {unit.latency.verdict}: {unit.latency.reason}")
    if plan.noise is not None:
        lines.append(plan.noise.note)
    return "\n".join(lines) + "\n"


def _gate_lines(result: GateResult) -> list[str]:
    label = f" [{result.label}]" if result.label else ""
    lines = [f"  {result.gate:<10} {result.verdict}{label}: {result.reason}"]
    measured = figures(result)
    if measured:
        lines.append(f"             {measured}")
    for name, values in result.also.items():
        shown = ", ".join(f"{metric} {value:.6g}" for metric, value in values.items())
        lines.append(f"             {name}: {shown}")
    lines += [f"             {note}" for note in result.notes]
    return lines


def figures(result: GateResult) -> str:
    """``cosine 0.99991 (>= 0.999), max_abs 0.012``."""
    bounds = {b.metric: f" ({b.op} {b.value:g})" for b in result.bounds if b.op is not None}
    return ", ".join(
        f"{name} {value:.6g}{bounds.get(name, '')}" for name, value in result.metrics.items()
    )
