"""What a diagnostic code is: the row type of the code catalog.

A phase declares its codes as rows in ``frtspec/diag/catalog/<phase>.py``::

    CODES: tuple[Code, ...] = (
        Code(
            id="FRT0201",
            title="unknown name",
            phase="names",
            summary="A name is used that nothing in scope declares.",
            example='frt 1\\nstructure s version 1 { … }',
            fix="Declare the name or correct its spelling.",
        ),
    )
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Phase = Literal[
    "source",  # FRT00xx  reading bytes
    "syntax",  # FRT01xx
    "names",  # FRT02xx
    "types",  # FRT03xx  types, dims, dataflow
    "impls",  # FRT04xx
    "schemes",  # FRT05xx
    "bindings",  # FRT06xx
    "unsupported",  # FRT07xx, but for those below
    "tool",  # FRT08xx, FRT095x  gen, lock, config, usage, names asked for
    "discovery",  # FRT074x, FRT075x
    "pipelines",  # FRT071x to FRT073x, FRT09xx
    "diff",  # FRT092x to FRT094x  versions, acceptances, retirement
]

PHASE_OF_RANGE: dict[str, Phase] = {
    "00": "source",
    "01": "syntax",
    "02": "names",
    "03": "types",
    "04": "impls",
    "05": "schemes",
    "06": "bindings",
    "07": "unsupported",
    "071": "pipelines",
    "072": "pipelines",
    "073": "pipelines",
    "074": "discovery",
    "075": "discovery",
    "08": "tool",
    "09": "pipelines",
    "092": "diff",
    "093": "diff",
    "094": "diff",
    "095": "tool",
}


def phase_of(number: str) -> Phase | None:
    """The phase of a code's four digits, by the longest prefix that has one."""
    return PHASE_OF_RANGE.get(number[:3]) or PHASE_OF_RANGE.get(number[:2])


EXAMPLE_PATH = "example.frt"


@dataclass(frozen=True)
class Example:
    """A project that makes ``frtspec`` report a code.

    files    ``(path, contents)`` relative to an empty folder; bytes where the text
             is not UTF-8. ``None`` as contents makes a folder.
    argv     the arguments of ``frtspec`` that report the code there
    prepare  the arguments of a run before (``("gen", "mine.frt")``), or empty
    edits    files written over between the two runs
    """

    files: tuple[tuple[str, str | bytes | None], ...]
    argv: tuple[str, ...] = ("check", ".")
    prepare: tuple[str, ...] = ()
    edits: tuple[tuple[str, str | bytes], ...] = ()


@dataclass(frozen=True)
class Code:
    """One kind of finding.

    id       ``FRT`` and four digits; never reused for another meaning
    title    a noun phrase, lower case, no full stop
    summary  what it means and why it is an error, in whole sentences
    example  a failing file's text (checked as ``example.frt``) or an ``Example``;
             a test runs it and asserts that this code is reported
    fix      what to do, in whole sentences
    fixed    the example's file with the fault mended, or None; a test asserts
             that it is free of findings
    path     where a text example's file stands; in specs/ it can stand in for a file of
             the catalog
    """

    id: str
    title: str
    phase: Phase
    summary: str
    example: str | Example
    fix: str
    fixed: str | None = None
    path: str = EXAMPLE_PATH

    def project(self) -> Example:
        """The example as a project, whichever way it was written."""
        return _as_project(self.example, self.path)

    def mended(self) -> Example | None:
        """The mended example as a project, or None where there is none."""
        return None if self.fixed is None else _as_project(self.fixed, self.path)


def _as_project(example: str | Example, path: str) -> Example:
    if isinstance(example, Example):
        return example
    return Example(files=((path, example),), argv=("check", path))
