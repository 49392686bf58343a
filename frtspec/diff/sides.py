"""What is compared: the specs of one side, read for their meaning as far as it is needed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from frtspec.closure import Purpose, head, needed
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile
from frtspec.ir.canon import Declaration
from frtspec.ir.decl import Program, Structure
from frtspec.lock import Declared, Row, declared

_KEYS = re.compile(
    r"^(structure|pipeline|binding|scheme|impl)\s+(\w+)(?:\s+version\s+(\d+))?"
    r"(?:\s+for\s+([\w.]+)(?:\s+version\s+(\d+))?)?|^(auto)\b",
    re.MULTILINE,
)

Key = tuple[str, str, int]
"""Kind, name and version (0 where the kind has none), as rows of the lock have them."""


@dataclass(frozen=True)
class Texts:
    """One side before it is read.

    label    what the user called it
    files    path as shown -> source, of the specs compared
    beside   of those that only names are resolved in: the rest of the project, the catalog
    rows     of the side's lock; None where it has none
    ops      op -> revision, as the lock has them
    unread   rows whose text is nowhere to be found
    single   whether it is one file: what it lacks is then not gone
    """

    label: str
    files: Mapping[str, SourceFile]
    beside: Mapping[str, SourceFile] = field(default_factory=dict)
    rows: Mapping[Key, Row] | None = None
    ops: Mapping[str, int] = field(default_factory=dict)
    unread: tuple[Row, ...] = ()
    single: bool = False


@dataclass(frozen=True)
class Side:
    """One side read. ``items``: declarations compared, by key; ``program``: all that was
    read; ``here``: keys that the side's text declares, read or not."""

    texts: Texts
    program: Program
    items: Mapping[Key, tuple[Declared, Declaration]]
    sources: Mapping[str, SourceFile]
    diagnostics: tuple[Diagnostic, ...]
    here: frozenset[Key]

    def status(self, key: Key) -> str | None:
        """What the lock says of it; None without a lock."""
        rows = self.texts.rows
        if rows is None:
            return None
        return rows[key].status if key in rows else "draft"


def keys_of(text: str) -> set[tuple[object, ...]]:
    """What a file declares, told from its text alone."""
    return {match.groups() for match in _KEYS.finditer(text)}


def moved_files(old: Texts, new: Texts) -> tuple[set[str], set[str]]:
    """Paths on either side whose text the other side has not."""
    mine = {s.digest for s in old.files.values()}
    theirs = {s.digest for s in new.files.values()}
    return (
        {path for path, s in old.files.items() if s.digest not in theirs},
        {path for path, s in new.files.items() if s.digest not in mine},
    )


def names_in(texts: Texts, paths: Collection[str]) -> set[str]:
    """Names of structures, pipelines, impls, schemes and bindings that the files declare."""
    heads = (head(texts.files[path].text) for path in paths)
    return {name for read in heads for _, name in read.declares}


def concerned(texts: Texts, paths: Collection[str], names: Collection[str]) -> set[str]:
    """The files, with those that name one of ``names``."""
    wanted = set(names)
    return set(paths) | {path for path, s in texts.files.items() if wanted & head(s.text).words}


def read(texts: Texts, asked: Collection[str]) -> Side:
    """Parses and analyses the asked files with what they need."""
    from frtspec.sema import analyse
    from frtspec.syntax.parse import parse

    everything = dict(texts.files)
    taken = {key for s in texts.files.values() for key in keys_of(s.text)}
    for path, source in texts.beside.items():
        if path not in everything and not keys_of(source.text) & taken:
            everything[path] = source
    heads = {path: head(source.text) for path, source in everything.items()}
    wanted = sorted(needed(heads, set(asked), Purpose.CHECK)) if asked else []
    found: list[Diagnostic] = []
    trees = []
    for path in wanted:
        result = parse(everything[path])
        found += result.diagnostics
        trees.append((everything[path], result.file))
    analysis = analyse(trees)
    found += analysis.diagnostics
    errors = tuple(d for d in found if d.severity == "error" and d.span.path in texts.files)
    items = {item.row.key: (item, decl) for item, decl in _with(analysis.program)}
    items = {key: pair for key, pair in items.items() if pair[0].span.path in asked}
    here = frozenset(_lock_key(key) for s in texts.files.values() for key in keys_of(s.text))
    return Side(texts, analysis.program, items, everything, errors, here)


def _lock_key(groups: tuple[object, ...]) -> Key:
    kind, name, version, target, target_version, auto = map(str, (g or "" for g in groups))
    if auto:
        return "auto", "auto", 0
    if kind == "impl":
        return kind, f"{name} for {target} v{target_version or 1}", int(version or 1)
    versioned = kind in ("structure", "pipeline")
    return kind, name, int(version or 1) if versioned else 0


def _with(program: Program) -> Iterator[tuple[Declared, Declaration]]:
    """Each row with its declaration."""
    by_span: dict[object, Declaration] = {
        decl.origin.span: decl
        for table in (
            program.structures,
            program.pipelines,
            program.impls,
            program.schemes,
            program.bindings,
        )
        for decl in table.values()
    }
    if program.auto is not None:
        by_span[program.auto.origin.span] = program.auto
    for item in declared(program):
        yield item, by_span[item.span]


def structures(side: Side) -> dict[tuple[str, int], Structure]:
    return side.program.structures
