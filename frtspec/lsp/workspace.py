"""The files that an editor works on: their texts, what was read from them, what they mean.

A ``Document`` never changes: an edit makes a new one. So the thread that checks files may go on
with the documents it began with while the next key is typed.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from frtspec import resources
from frtspec.closure import Head, Purpose, head, needed
from frtspec.codegen.generate import problems
from frtspec.config import Config, load_config
from frtspec.diag.diagnostic import Diagnostic, in_order
from frtspec.diag.source import SourceFile, Span
from frtspec.ir.decl import Program
from frtspec.lsp.occur_binding import host_paths
from frtspec.lsp.occurrences import Occurrence, Symbol, occurrences
from frtspec.project import SpecFile, select, writable
from frtspec.sema.analyse import analyse
from frtspec.syntax import ast
from frtspec.syntax.fmt import format_source
from frtspec.syntax.parse import ParseResult, parse
from frtspec.syntax.read import read_source
from frtspec.syntax.scanner import lexemes

Place = tuple["Document", Occurrence]


@dataclass
class Document:
    """One file as it is now. ``good``: what it said when it last had no syntax errors."""

    file: SpecFile
    source: SourceFile
    good: Document | None = None

    @property
    def path(self) -> str:
        return self.source.path

    @cached_property
    def parsed(self) -> ParseResult:
        return parse(self.source)

    @property
    def read(self) -> bool:
        """Whether it was parsed yet."""
        return "parsed" in self.__dict__

    @property
    def whole(self) -> bool:
        """Whether it has no syntax errors."""
        return not self.parsed.diagnostics

    @cached_property
    def formatted(self) -> str | None:
        """The text in the one layout; None where it has syntax errors."""
        return format_source(self.source).text

    @cached_property
    def head(self) -> Head:
        return head(self.source.text)

    @cached_property
    def occurrences(self) -> list[Occurrence]:
        """The names of the text. Where a part of it can't be read, those that its last good
        text had there, as far as it is the same; without one, open blocks count as closed."""
        found = occurrences(self.parsed.file)
        if self.whole:
            return found
        more = occurrences(self._closed) if self.good is None else moved(self.good, self.source)
        there = {one.span.start for one in found}
        found += [one for one in more if one.span.start not in there]
        return sorted(found, key=lambda one: (one.span.start, not one.defines))

    @property
    def _closed(self) -> ast.File:
        text = self.source.text
        marks = [one.text for one in lexemes(text) if one.kind == "mark"]
        missing = max(0, marks.count("{") - marks.count("}"))
        return parse(SourceFile(self.path, text + "\n" + "}\n" * missing)).file

    @cached_property
    def definitions(self) -> list[Occurrence]:
        return [one for one in self.occurrences if one.defines]

    @cached_property
    def host_paths(self) -> frozenset[tuple[str, str, str]]:
        """(structure, what, path) of every seat: ``what`` is a slot, a point or ``at``."""
        return frozenset(host_paths(self.parsed.file))

    @cached_property
    def by_symbol(self) -> Mapping[Symbol, list[Occurrence]]:
        found = defaultdict(list)
        for one in self.occurrences:
            found[one.symbol].append(one)
        return dict(found)

    def at(self, offset: int) -> Occurrence | None:
        """The name that the offset lies in, or that ends there."""
        hits = [o for o in self.occurrences if o.span.start <= offset <= o.span.end]
        return min(hits, key=lambda o: (o.span.end == offset, not o.defines), default=None)


@dataclass
class Workspace:
    """``program``: what was right when it was last checked, a declaration at a time."""

    here: Path
    config: Config
    documents: dict[str, Document] = field(default_factory=dict)
    program: Program = field(default_factory=Program)

    @staticmethod
    def of(folder: Path) -> Workspace:
        """The specs of a project folder, and the catalog's."""
        made = Workspace(folder, load_config(folder).config)
        made.read()
        return made

    def read(self) -> None:
        """Reads every file from disk; those that can't be read are left out."""
        for file in select((), self.config, self.here).files:
            self.read_file(file)

    def read_file(self, file: SpecFile) -> None:
        source, _ = read_source(str(file.real))
        if source is not None:
            self.put(file, source)

    def put(self, file: SpecFile, source: SourceFile) -> None:
        before = self.documents.get(source.path)
        if before is not None and before.read and before.whole:
            before.good = None  # it is what the next one falls back on
            self.documents[source.path] = Document(file, source, before)
        else:
            self.documents[source.path] = Document(file, source, before and before.good)

    def edit(self, path: str, text: str) -> Document:
        """The text of a file as the editor has it. A path is absolute, links resolved."""
        known = self.documents.get(path)
        if known is None:
            self._meet(Path(path))
            known = self.documents.get(path)
        file = SpecFile(Path(path), path, Path(path).name, None) if known is None else known.file
        if known is None or known.source.text != text:
            self.put(file, SourceFile.from_text(path, text))
        return self.documents[path]

    def _meet(self, path: Path) -> None:
        """A new file; one of a spec root may stand in for the catalog's at its place."""
        for root in self.config.specs:
            if path.is_relative_to(root.resolve()):
                name = path.relative_to(root.resolve()).as_posix()
                for other in [d for d in self.documents.values() if d.file.name == name]:
                    if other.file.in_catalog:
                        del self.documents[other.path]
                file = SpecFile(path, str(path), name, root)
                self.put(file, SourceFile.from_text(str(path), ""))

    def forget(self, path: str) -> None:
        """The editor has closed the file: what counts is on disk again."""
        known = self.documents.get(path)
        if known is None:
            return
        source, _ = read_source(path)
        if source is None:
            del self.documents[path]
        elif source.text != known.source.text:
            self.put(known.file, source)

    def may_write(self, document: Document) -> bool:
        """Whether the file is the project's own, and not the installed catalog's."""
        return writable(document.file, self.config) or resources.specs_dir() in self.config.specs

    # ------------------------------------------------------------ names

    def settled(self, symbol: Symbol) -> Symbol:
        """A symbol with the version that was left out, where there is only one."""
        kind, *rest = symbol
        if kind in ("structure", "pipeline") and rest[1] is None:
            versions = self.versions(str(kind), str(rest[0]))
            return (kind, rest[0], versions[0]) if len(versions) == 1 else symbol
        if kind == "impl" and rest[1] is None:
            versions = self.versions("structure", str(rest[0]))
            return (kind, rest[0], versions[0], *rest[2:]) if len(versions) == 1 else symbol
        if kind in ("member", "seam", "value", "local", "inner") and isinstance(rest[0], tuple):
            return (kind, self.settled(rest[0]), *rest[1:])
        return symbol

    def versions(self, kind: str, name: str) -> list[int]:
        """The versions of a structure or pipeline that some file declares."""
        found = set()
        for document in self.documents.values():
            if (kind, name) in document.head.declares:
                found |= {s[2] for s in document.by_symbol if s[:2] == (kind, name)}
        return sorted(v for v in found if isinstance(v, int) and self.define((kind, name, v)))

    def spellings(self, symbol: Symbol) -> Iterator[Symbol]:
        """The symbol as files may write it: with its version, or without."""
        yield symbol
        bare = _versionless(symbol)
        if bare != symbol and self.settled(bare) == symbol:
            yield bare

    def places(self, symbol: Symbol) -> Iterator[Place]:
        """Every occurrence of a settled symbol."""
        wanted = tuple(self.spellings(symbol))
        for document in list(self.documents.values()):
            for spelling in wanted:
                for one in document.by_symbol.get(spelling, ()):
                    yield document, one

    def define(self, symbol: Symbol) -> list[Place]:
        """Where a settled symbol is declared: the first definition in each file; an output's
        is its port, a name that is bound again in a reference the first binding."""
        found: list[Place] = []
        for document in list(self.documents.values()):
            defining = [o for o in document.by_symbol.get(symbol, ()) if o.defines]
            if not defining and document.good is not None:
                continue
            found += [(document, one) for one in defining[:1]]
        return found

    def defined_in(self, owner: Symbol) -> dict[str, tuple[Document, Occurrence]]:
        """The members of a structure or pipeline by name; from its last good text where the
        present one has syntax errors."""
        found: dict[str, tuple[Document, Occurrence]] = {}
        for document in self._declaring(owner):
            texts = [document] if document.whole else [document, document.good or document]
            for text in texts:
                for one in text.occurrences:
                    if one.defines and one.symbol[0] == "member" and one.symbol[1] == owner:
                        found.setdefault(one.name, (text, one))
        return found

    def values_of(self, owner: Symbol, axis: str) -> list[str]:
        """The values of a variant, in the order of the spec."""
        for document in self._declaring(owner):
            for text in (document, document.good):
                found = [
                    one.name
                    for one in ([] if text is None else text.occurrences)
                    if one.defines and one.symbol[:3] == ("value", owner, axis)
                ]
                if found:
                    return found
        return []

    def seams_of(self, owner: Symbol) -> list[str]:
        return [
            one.name
            for document in self._declaring(owner)
            for one in (document if document.whole else document.good or document).occurrences
            if one.defines and one.symbol[:2] == ("seam", owner)
        ]

    def _declaring(self, owner: Symbol) -> list[Document]:
        key = (str(owner[0]), str(owner[1]))
        return [d for d in self.documents.values() if key in d.head.declares]

    def declarations(self, kind: str) -> list[Place]:
        """Every declaration of a kind, by name."""
        found = [
            (document, one)
            for document in self.documents.values()
            for one in document.definitions
            if one.symbol[0] == kind
        ]
        return sorted(found, key=lambda place: place[1].name)

    # ------------------------------------------------------------ meaning

    def check(self, path: str) -> list[Diagnostic]:
        """What ``frtspec check`` finds in one file, read with what it needs."""
        documents = dict(self.documents)
        asked = documents.get(path)
        if asked is None:
            return []
        heads = {name: document.head for name, document in documents.items()}
        wanted = needed(heads, [path], Purpose.CHECK)
        analysis = analyse(_files(documents, wanted, path))
        if analysis.open and len(wanted) < len(documents):
            analysis = analyse(_files(documents, frozenset(documents), path))
        self.program = _merged(self.program, analysis.program)
        found = [*asked.parsed.diagnostics, *analysis.diagnostics]
        asked.formatted  # noqa: B018 - made here, so that no request waits for it
        later = problems(analysis.program, frozenset({path}))
        return [d for d in in_order([*found, *later]) if d.span.path == path]

    def check_all(self) -> None:
        """Learns what every file means, for hovers over what no open file needs."""
        documents = dict(self.documents)
        program = analyse(_files(documents, frozenset(documents), "")).program
        self.program = _merged(program, self.program)

    def dependents(self, path: str, among: Iterable[str]) -> list[str]:
        """Those files of ``among`` that are checked together with ``path``."""
        heads = {name: document.head for name, document in list(self.documents.items())}
        return [
            other
            for other in among
            if other != path and other in heads and path in needed(heads, [other], Purpose.CHECK)
        ]


def moved(good: Document, now: SourceFile) -> list[Occurrence]:
    """The names of a text where they stand in a later one: those before and behind what was
    edited."""
    old, new = good.source.text, now.text
    start = len(os.path.commonprefix((old, new)))
    most = min(len(old), len(new)) - start
    tail = len(os.path.commonprefix((old[len(old) - most :][::-1], new[len(new) - most :][::-1])))
    end, shift = len(old) - tail, len(new) - len(old)

    def there(span: Span) -> Span:
        low, high = (at if at <= start else max(at + shift, start) for at in (span.start, span.end))
        return Span(span.path, low, high)

    return [
        replace(one, span=there(one.span), whole=one.whole and there(one.whole))
        for one in good.occurrences
        if one.span.end < start or one.span.start > end
    ]


def _files(
    documents: Mapping[str, Document], wanted: frozenset[str], last: str
) -> list[tuple[SourceFile, ast.File]]:
    """In the order of a run: a name declared twice is reported in the file that is asked for,
    rather than in the project's others, and there rather than in the catalog."""
    chosen = [documents[path] for path in wanted if path in documents]
    chosen.sort(key=lambda d: (d.path == last, not d.file.in_catalog, d.file.name, d.path))
    return [(document.source, document.parsed.file) for document in chosen]


def _merged(older: Program, newer: Program) -> Program:
    return Program(
        {**older.structures, **newer.structures},
        {**older.impls, **newer.impls},
        {**older.schemes, **newer.schemes},
        newer.auto or older.auto,
        {**older.bindings, **newer.bindings},
        {**older.pipelines, **newer.pipelines},
    )


def _versionless(symbol: Symbol) -> Symbol:
    kind, *rest = symbol
    if kind in ("structure", "pipeline"):
        return (kind, rest[0], None)
    if kind == "impl":
        return (kind, rest[0], None, *rest[2:])
    if kind in ("member", "seam", "value", "local", "inner") and isinstance(rest[0], tuple):
        return (kind, _versionless(rest[0]), *rest[1:])
    return symbol
