"""A structure's rules judged on one seat: held, broken, or not measured.

Sizes come from the seat and from the calls that calibration saw; facts are measured
(``measure``). A ``require`` rule that is broken refuses the seat, and so does one that
could not be measured: what is not shown is not taken for granted. ``qualify`` rules are
recorded, and bind where speed is judged.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from frtspec.dims import Constraint, DimError, Measured
from frtspec.runtime.eligibility.rules import Rule
from frtspec.runtime.errors import Refusal
from frtspec.runtime.spec import Seat, StructureSpec

HOLDS, BROKEN, NOT_MEASURED, NOT_APPLICABLE = "holds", "broken", "not_measured", "not_applicable"

Value = float | int | str


@dataclass(frozen=True)
class Found:
    """What is known of a seat. ``sizes``: dims; ``facts``: ``steps(cond)`` -> its value;
    ``missing``: a fact -> why it was not measured; ``void``: a fact that has no meaning on
    this host -> why; ``forms``: mechanisms that the seat's calls need."""

    sizes: Mapping[str, int] = field(default_factory=dict)
    facts: Mapping[str, Value] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    void: Mapping[str, str] = field(default_factory=dict)
    forms: tuple[str, ...] = ()


@dataclass(frozen=True)
class Ruling:
    """One rule on one seat. ``found``: what the seat has (``M*K*N = 12800``), or why there
    is no answer."""

    rule: str
    kind: str
    form: str | None
    outcome: str
    found: str

    @property
    def told(self) -> str:
        """``steps(cond) <= 64 does not hold: steps(cond) = 80``."""
        return f"{self.rule} {_SAID[self.outcome]}: {self.found}"


_SAID = {
    HOLDS: "holds",
    BROKEN: "does not hold",
    NOT_MEASURED: "is not decided",
    NOT_APPLICABLE: "asks for nothing here",
}


def judge(
    spec: StructureSpec,
    variants: Mapping[str, object],
    found: Found,
    forms: Collection[str] = (),
) -> list[Ruling]:
    """Every rule of a structure that counts for these variants and forms.

    forms  the impl that the seat gets and the mechanisms it uses; rules for others are out
    """
    named = {axis: str(value) for axis, value in variants.items()}
    return [
        _ruling(rule, found)
        for rule in spec.rules
        if (rule.form is None or rule.form in forms) and (rule.when is None or rule.when(named))
    ]


def _ruling(rule: Rule, found: Found) -> Ruling:
    outcome, told = (
        _size(rule.test, found) if isinstance(rule.test, Constraint) else _fact(rule.test, found)
    )
    return Ruling(rule.text, rule.kind, rule.form, outcome, told)


def _size(test: Constraint, found: Found) -> tuple[str, str]:
    try:
        holds = test.check(found.sizes)
        subject = test.subject
        told = f"{subject} = {subject.value(found.sizes)}"
    except DimError:
        open_ = [name for name in test.symbols() if name not in found.sizes]
        return NOT_MEASURED, f"{', '.join(open_) or test.text} is not determined"
    return (HOLDS if holds else BROKEN), told


def _fact(test: Measured, found: Found) -> tuple[str, str]:
    if test.subject in found.void:
        return NOT_APPLICABLE, found.void[test.subject]
    if test.subject not in found.facts:
        why = found.missing.get(test.subject, "nothing measures it for this form of seat")
        return NOT_MEASURED, why
    value = found.facts[test.subject]
    return (HOLDS if test.check(value) else BROKEN), f"{test.subject} = {value_text(value)}"


def value_text(value: Value) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def enforce(seat: Seat, rulings: Sequence[Ruling], *, pending: bool = False) -> None:
    """Raise Refusal ``structure.requires`` for the first ``require`` that does not hold.

    pending  facts are still to come: a rule that is not decided yet is left open
    """
    for ruling in rulings:
        undecided = ruling.outcome == NOT_MEASURED and not pending
        if ruling.kind != "require" or not (ruling.outcome == BROKEN or undecided):
            continue
        raise Refusal(
            "structure.requires",
            f"{seat.structure.key} requires {ruling.told}",
            fix=(
                "this host lies outside what the structure describes"
                if ruling.outcome == BROKEN
                else "bind what the rule asks about, so that it can be measured"
            ),
            seat=seat.name,
            shape=seat.dims,
        )


def missed(rulings: Sequence[Ruling]) -> list[str]:
    """The profit rules that do not hold, as they are told."""
    return [r.told for r in rulings if r.kind == "qualify" and r.outcome == BROKEN]
