"""``spec.lock``: one row per declaration of a spec root, with its digests and its status.

The status of a version is ``draft`` or ``imported`` as its spec says, until a reviewer
writes ``released`` or ``retired`` into the lock. From then on its bytes are frozen, and
the row stays. No digest depends on the status.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from frtspec import tomltext
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile, Span
from frtspec.ir.decl import Origin, Program
from frtspec.ir.ops import OPS
from frtspec.ir.walk import ops

LOCK_NAME = "spec.lock"
FROZEN = ("released", "retired")
STATUSES = ("draft", "imported", *FROZEN)
_FIELDS = (
    *("kind", "name", "version", "path", "source_digest", "contract_digest", "status"),
    "migration",
)
_OPTIONAL = ("version", "migration")
_HEADER = """\
# Written by `frtspec lock`. A status of released or retired is set by hand and kept; a retired
# version says in `migration` where to go from it.
"""


@dataclass(frozen=True)
class Row:
    """One declaration. ``name`` says of an impl what it is for (``fp8_static for
    decoder_ffn.mlp v1``); ``version`` None where the kind has none; ``path`` inside the root;
    ``migration`` of a retired version where to go from it."""

    kind: str
    name: str
    version: int | None
    path: str
    source_digest: str
    contract_digest: str
    status: str
    migration: str | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        return self.kind, self.name, self.version or 0

    def __str__(self) -> str:
        name = "" if self.name == self.kind else f" {self.name}"
        version = "" if self.version is None else f" version {self.version}"
        return f"{self.kind}{name}{version}"


@dataclass(frozen=True)
class Declared:
    """A row as the specs give it now, and where its declaration lies."""

    row: Row
    span: Span


def declared(program: Program) -> Iterator[Declared]:
    """A row for every declaration of the program."""
    for structure in program.structures.values():
        yield _declared(
            "structure",
            structure.name,
            structure.version,
            structure.origin,
            structure.status.name,
        )
    for pipeline in program.pipelines.values():
        yield _declared(
            "pipeline", pipeline.name, pipeline.version, pipeline.origin, pipeline.status.name
        )
    for impl in program.impls.values():
        target = impl.structure[0] + (f".{impl.seam}" if impl.seam else "")
        name = f"{impl.name} for {target} v{impl.structure[1]}"
        yield _declared("impl", name, impl.version, impl.origin, impl.status.name)
    for scheme in program.schemes.values():
        yield _declared("scheme", scheme.name, None, scheme.origin, scheme.status.name)
    if program.auto is not None:
        yield _declared("auto", "auto", None, program.auto.origin, "draft")
    for binding in program.bindings.values():
        yield _declared("binding", binding.name, None, binding.origin, binding.status.name)


def _declared(kind: str, name: str, version: int | None, origin: Origin, status: str) -> Declared:
    row = Row(
        kind, name, version, origin.path, origin.source_digest, origin.contract_digest, status
    )
    return Declared(row, origin.span)


# ---------------------------------------------------------------- the file


def render_lock(rows: Iterable[Row], ops: Mapping[str, int] | None = None) -> str:
    """The file's text: rows sorted by kind, name and version; ``ops``: revision of each op
    that a reference uses."""
    blocks = [_HEADER]
    if ops:
        lines = (f"{tomltext.quote(name)} = {ops[name]}" for name in sorted(ops))
        blocks.append("\n".join(("# Revision of each op.", "[ops]", *lines)) + "\n")
    for row in sorted(rows, key=lambda row: row.key):
        lines = ["[[declaration]]"]
        for field in _FIELDS:
            value = getattr(row, field)
            if value is not None:
                lines.append(f"{field} = {tomltext.quote(value)}")
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def read_lock(source: SourceFile) -> tuple[tuple[Row, ...], tuple[Diagnostic, ...]]:
    """The rows of a lock file, and what is wrong with it; never raises on its contents."""
    try:
        table = tomltext.parse(source)
    except tomltext.TomlFault as fault:
        return (), (_broken(f"not valid TOML: {fault.reason}", fault.span),)
    rows: list[Row] = []
    found: list[Diagnostic] = []
    items = table.get("declaration", [])
    unknown = sorted(table.keys() - {"declaration", "ops"})
    if unknown or not isinstance(items, list):
        message = f"unknown key `{unknown[0]}`" if unknown else "`declaration` is no list of rows"
        return (), (_broken(message, Span(source.path, 0, 0)),)
    for number, (item, span) in enumerate(zip(items, _row_spans(source), strict=False), start=1):
        problem = _row_problem(item)
        if problem:
            found.append(_broken(f"row {number}: {problem}", span))
        else:
            rows.append(Row(**{field: item.get(field) for field in _FIELDS}))
    return tuple(rows), tuple(found)


def read_ops(source: SourceFile) -> dict[str, int]:
    """Op -> revision, as the lock has them; nothing where it is broken."""
    try:
        table = tomltext.parse(source).get("ops", {})
    except tomltext.TomlFault:
        return {}
    found = table.items() if isinstance(table, Mapping) else ()
    return {name: revision for name, revision in found if type(revision) is int}


def ops_of(program: Program) -> dict[str, int]:
    """Revision of every op that a reference of the program uses."""
    used = {op.op for found in program.structures.values() for op in ops(found.reference)}
    return {name: OPS[name].revision for name in sorted(used)}


def _row_problem(item: object) -> str | None:
    if not isinstance(item, Mapping):
        return "it is no table"
    for field in item:
        if field not in _FIELDS:
            return f"unknown key `{field}`"
    for field in _FIELDS:
        value: Any = item.get(field)
        if field in _OPTIONAL and value is None:
            continue
        if field == "version":
            if type(value) is not int:
                return "`version` must be a whole number"
        elif not isinstance(value, str):
            return f"`{field}` must be a text"
    if item["status"] not in STATUSES:
        return f"status `{item['status']}` is none of {', '.join(STATUSES)}"
    return None


def _row_spans(source: SourceFile) -> Iterator[Span]:
    for head in re.finditer(r"^\[\[declaration\]\]", source.text, re.MULTILINE):
        yield Span(source.path, head.start(), head.end())
    while True:
        yield Span(source.path, 0, 0)


def _broken(message: str, span: Span) -> Diagnostic:
    return Diagnostic(
        "FRT0861", message, span, help="restore the file, or delete it and run `frtspec lock`"
    )


# ---------------------------------------------------------------- comparing


@dataclass(frozen=True)
class LockChange:
    """What `frtspec lock` would write.

    rows     the new contents
    moved    one diagnostic per row that differs (FRT0860)
    refused  changes to a released or retired version (FRT0862): nothing may be written
    """

    rows: tuple[Row, ...]
    moved: tuple[Diagnostic, ...]
    refused: tuple[Diagnostic, ...]


def compare(
    now: Iterable[Declared],
    locked: Iterable[Row],
    lock_path: str,
    told: Callable[[Row, Declared], str] | None = None,
) -> LockChange:
    """Holds the declarations against the lock.

    told  what a released version whose contract moved became, in a few words
    """
    old = {row.key: row for row in locked}
    rows: list[Row] = []
    moved: list[Diagnostic] = []
    refused: list[Diagnostic] = []
    seen = set()
    for item in now:
        row, before = item.row, old.get(item.row.key)
        seen.add(row.key)
        if before is not None and before.status in FROZEN:
            row = replace(row, status=before.status, migration=before.migration)
        rows.append(row)
        if before is None:
            moved.append(_moved(f"{row} is not in {LOCK_NAME}", item.span))
        elif before.status in FROZEN and before.source_digest != row.source_digest:
            refused.append(
                _frozen(before, f"its file changed: {_became(before, item, told)}", item.span)
            )
        elif before != row:
            moved.append(_moved(f"{row}: {_difference(before, row)}", item.span))
    for key, row in old.items():
        if key in seen:
            continue
        if row.status == "retired":
            rows.append(row)
        elif row.status == "released":
            refused.append(_frozen(row, "its declaration is gone", Span(lock_path, 0, 0)))
        else:
            moved.append(_moved(f"{row} is locked and no longer declared", Span(lock_path, 0, 0)))
    return LockChange(tuple(rows), tuple(moved), tuple(refused))


def _became(before: Row, item: Declared, told: Callable[[Row, Declared], str] | None) -> str:
    if before.contract_digest == item.row.contract_digest:
        return "an editorial change, which can ride with the next version"
    return "a change of the contract" if told is None else told(before, item)


def _difference(before: Row, now: Row) -> str:
    parts = []
    if before.contract_digest != now.contract_digest:
        parts.append("the contract moved")
    elif before.source_digest != now.source_digest:
        parts.append("the text moved, the contract did not")
    if before.path != now.path:
        parts.append(f"the file moved from {before.path} to {now.path}")
    if before.status != now.status:
        parts.append(f"the status went from {before.status} to {now.status}")
    return ", ".join(parts)


def _moved(message: str, span: Span) -> Diagnostic:
    return Diagnostic("FRT0860", message, span, help="run `frtspec lock` and commit the file")


def _frozen(row: Row, what: str, span: Span) -> Diagnostic:
    return Diagnostic(
        "FRT0862",
        f"{row} is {row.status}, and {what}",
        span,
        help="restore it and declare the change as a new version",
    )
