"""Rules of a structure as data: what must hold on a seat, and what makes it pay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from frtspec.dims import Constraint, Measured

When = Callable[[Mapping[str, str]], bool]


@dataclass(frozen=True)
class Rule:
    """One rule.

    kind     ``require`` (a seat that breaks it is refused) or ``qualify`` (of profit)
    test     on the seat's sizes, or on a measured fact
    form     the impl or mechanism it is for; None: every one
    when     whether it counts for a seat's variants; None: always
    because  that condition as the spec writes it
    """

    kind: str
    test: Constraint | Measured
    form: str | None = None
    when: When | None = None
    because: str = ""

    @property
    def text(self) -> str:
        """The rule as the spec writes it: ``for fp8_static when bias is add: M*K >= 9``."""
        head = [f"for {self.form}"] if self.form else []
        head += [f"when {self.because}"] if self.because else []
        return f"{' '.join(head)}: {self.test.text}" if head else self.test.text


def require(
    test: Constraint | Measured,
    *,
    form: str | None = None,
    when: When | None = None,
    because: str = "",
) -> Rule:
    """A rule that has to hold."""
    return Rule("require", test, form, when, because)


def qualify(
    test: Constraint | Measured,
    *,
    form: str | None = None,
    when: When | None = None,
    because: str = "",
) -> Rule:
    """A rule of profit."""
    return Rule("qualify", test, form, when, because)
