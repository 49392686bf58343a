"""The gates of each seat by itself, on what the untouched host handed it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from frtspec.runtime.cadence.bind import judged as judge_held
from frtspec.runtime.gating import gates, refusing
from frtspec.runtime.gating.reference import SeatReference
from frtspec.runtime.isolation import isolated
from frtspec.runtime.steptable.bind import judged as judge_table

if TYPE_CHECKING:
    from frtspec.runtime.session import Session


def check_references(session: Session) -> None:
    """Each structure's reference against what the host computed at its seat."""
    assert session.judged is not None
    for record in session.open_records():
        if record.seat.form == "update":  # the host's own computation: there is nothing to compare
            continue
        with isolated([record], "running the structure's reference"):
            reference = SeatReference(record.seat, session.model)
            session.references[record.name] = reference
            result = gates.reference_agreement(reference, session.judged.captured(record.name))
            record.gates.append(result)
            refusing.require(record.seat, [result])


def judge_seats(session: Session) -> None:
    """Saturation, kernel parity and boundary, seat by seat."""
    assert session.calibrated and session.judged and session.calibration
    label = session.calibration.label
    for record in session.open_records():
        bound, name = record.bound, record.name
        assert bound is not None
        if bound.held is not None:
            with isolated([record], "judging the seat"):
                record.gates += judge_held(record.seat, session.judged, label)
                refusing.require(record.seat, record.gates, form=record.form)
            continue
        if bound.table is not None:
            with isolated([record], "judging the seat"):
                record.gates += judge_table(bound, label)
                refusing.require(record.seat, record.gates, form=record.form)
            continue
        reference = session.references[name]
        captures = [c for c in session.judged.captured(name) if bound.runs(c.seat_inputs)]
        scales = bound.impl.SPEC.scales.values()
        points = [scale.point for scale in scales if scale.kind != "balance"]
        with isolated([record], "judging the seat"), torch.no_grad():
            for result in (
                gates.saturation(record.seat, points, session.calibrated, session.judged),
                gates.kernel_parity(bound, reference, captures),
                gates.boundary(bound, reference, captures, label=label),
            ):
                record.gates.append(result)
            refusing.require(record.seat, record.gates, form=record.form)
