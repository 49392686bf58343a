"""Completion: keywords that the grammar allows, and the names that fit the place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from lsprotocol import types

from frtspec.diag.source import Span
from frtspec.ir import words
from frtspec.ir.ops import OPS
from frtspec.lsp.cursor import Cursor, allowed, cursor, referred, seam_of
from frtspec.lsp.describe import outline
from frtspec.lsp.occurrences import Symbol
from frtspec.lsp.positions import offset, span_range
from frtspec.lsp.workspace import Document, Workspace

_K = types.CompletionItemKind
_KINDS = {
    "slot": _K.Field,
    "point": _K.Event,
    "variant": _K.Enum,
    "value": _K.EnumMember,
    "dim": _K.TypeParameter,
    "param": _K.Property,
    "input": _K.Interface,
    "output": _K.Interface,
    "structure": _K.Class,
    "impl": _K.Method,
    "scheme": _K.Module,
    "seat": _K.Variable,
    "op": _K.Function,
    "path": _K.Reference,
    "word": _K.Constant,
    "keyword": _K.Keyword,
}
_DTYPES = ("host", "f32", "bf16", "fp16", "fp8_e4m3", "int8", "int64", "bool")
_BETWEEN = {"slot", "input", "output", "param", "dim", "variant", "point", "value", "index", "part"}
"""Kinds of names that an expression of a structure may read."""


@dataclass(frozen=True)
class Item:
    name: str
    kind: str
    detail: str = ""


def completions(
    workspace: Workspace, document: Document, at: types.Position
) -> list[types.CompletionItem]:
    """What may stand at a position, fitting names before keywords."""
    source = document.source
    place = offset(source, at)
    found = cursor(source.text, place)
    if found is None:
        return []
    names = list(dict.fromkeys(_Names(workspace, document, found).all()))
    keywords = sorted(allowed(found) - {item.name for item in names})
    items = [*names, *(Item(word, "keyword") for word in keywords)]
    edits = {False: len(found.word), True: len(found.path)}
    return [_item(item, number, document, place, edits) for number, item in enumerate(items)]


def _item(
    item: Item, number: int, document: Document, place: int, typed: dict[bool, int]
) -> types.CompletionItem:
    span = Span(document.path, place - typed[item.kind == "path"], place)
    return types.CompletionItem(
        label=item.name,
        kind=_KINDS.get(item.kind, _K.Text),
        detail=item.detail or item.kind,
        sort_text=f"{number:04}",
        filter_text=item.name,
        text_edit=types.TextEdit(span_range(document.source, span), item.name),
    )


class _Names:
    """The names that fit; one method a kind of block."""

    def __init__(self, workspace: Workspace, document: Document, at: Cursor) -> None:
        self.ws = workspace
        self.document = document
        self.at = at
        self.item = at.here.item
        target = at.target()
        self.target = None if target is None else workspace.settled(target)

    def all(self) -> Iterator[Item]:
        item = self.item
        if self.at.here.rounds and self.at.here.member:
            item = self.at.here.member
        if item[:1] == ["status"] and len(item) == 1:
            yield from _words(words.STATUSES)
            return
        by_kind: dict[str, Callable[[list[str]], Iterable[Item]]] = {
            "": self.file,
            "structure": self.structure,
            "reference": self.expression,
            "each": self.each,
            "scan": self.expression,
            "seam": self.seam,
            "gate": lambda item: _words(words.METRICS) if not item else (),
            "discover": self.seat,
            "match": self.arms,
            "qualify": self.expression,
            "require": self.expression,
            "envelope": self.expression,
            "impl": self.impl,
            "rung": self.rung,
            "band": self.rung,
            "numerics": self.numerics,
            "scheme": self.scheme,
            "at": self.statistics,
            "auto": lambda item: self.declared("scheme") if item[-1:] == ["=>"] else (),
            "binding": self.binding,
            "seat": self.seat,
            "boundary": self.boundary,
            "siblings": self.slots,
            "dims": self.dims,
            "pipeline": self.pipeline_use,
            "stage": self.stage,
            "coverage": self.coverage,
            "segment": self.coverage,
        }
        fitting = by_kind.get(self.at.here.kind)
        if fitting is not None:
            yield from fitting(item)

    # ------------------------------------------------------------ sources of names

    def members(self, *kinds: str) -> Iterator[Item]:
        """Names of the target of these kinds."""
        if self.target is None:
            return
        found = self.ws.defined_in(self.target)
        for name, (document, one) in found.items():
            if one.kind in kinds:
                yield Item(name, one.kind, outline(document, one))

    def values(self, axis: str) -> Iterator[Item]:
        if self.target is not None:
            for value in self.ws.values_of(self.target, axis):
                yield Item(value, "value", f"of {axis}")

    def declared(self, kind: str) -> Iterator[Item]:
        for document, one in self.ws.declarations(kind):
            yield Item(one.name, kind, outline(document, one))

    def paths(self, what: str) -> Iterator[Item]:
        """Host paths that bindings of the same structure have for this; then those that this
        file has for anything."""
        structure = None if self.target is None else self.target[1]
        known = {path for d in self.ws.documents.values() for path in d.host_paths}
        fitting = sorted({p for s, w, p in known if s == structure and w == what})
        here = self.document if self.document.whole else self.document.good or self.document
        others = sorted({p for _, _, p in here.host_paths} - set(fitting))
        for path in (*fitting, *others):
            yield Item(path, "path", f"bound as {what}" if path in fitting else "in this file")

    def structures(self, words_after: list[str]) -> Iterator[Item]:
        """A reference to a structure, as far as it is written."""
        if not words_after:
            yield from self.declared("structure")
            return
        symbol = referred(words_after)
        if symbol is None:
            return
        if words_after[-1] == ".":
            whole = self.ws.settled(symbol)
            versions = self.ws.versions("structure", words_after[0])
            owners = [whole] if whole[2] else [("structure", words_after[0], v) for v in versions]
            for owner in owners:
                for seam in self.ws.seams_of(owner):
                    yield Item(seam, "seam", f"of {words_after[0]}")
        elif words_after[-1] == "version":
            for version in self.ws.versions("structure", words_after[0]):
                yield Item(str(version), "word", f"of {words_after[0]}")

    def seats(self) -> dict[str, Symbol]:
        """The seats of this file's bindings, with their structures."""
        found: dict[str, Symbol] = {}
        for document in (self.document, self.document.good):
            for one in [] if document is None else document.occurrences:
                if one.defines and one.kind == "seat" and one.whole is not None:
                    text = document.source.text if document else ""
                    head = text[one.span.end : one.whole.end].split("at", 1)[0]
                    spelt = head.replace(":", " ").replace(".", " . ").split()
                    symbol = referred(spelt)
                    if symbol is not None:
                        found.setdefault(one.name, self.ws.settled(symbol))
        return found

    def own_dims(self) -> Iterator[Item]:
        for document in (self.document, self.document.good):
            for one in [] if document is None else document.occurrences:
                if one.defines and one.symbol[0] == "local" and one.kind == "dim":
                    yield Item(one.name, "dim", "of this binding")

    # ------------------------------------------------------------ structures

    def file(self, item: list[str]) -> Iterator[Item]:
        if "for" in item:
            yield from self.structures(item[item.index("for") + 1 :])

    def structure(self, item: list[str]) -> Iterator[Item]:
        match item:
            case ["in" | "out", *_, ":"]:
                yield from (Item(name, "word", "dtype") for name in _DTYPES)
            case ["slot", _, ":", "structure", *rest]:
                yield from self.structures(rest)
            case ["gate"]:
                yield from _words(words.GATE_KINDS)
            case ["gate", _, "on"]:
                yield from _words(words.DISTRIBUTIONS)
            case ["gate", _, "per"]:
                yield from _words(words.LATENCY_PER)
            case ["discover"]:
                if self.target is not None:
                    yield from (Item(s, "seam") for s in self.ws.seams_of(self.target))
            case ["point", _]:
                yield from _words(words.POINT_KINDS)
            case ["in" | "out" | "slot", *_] if "when" in item or "[" in item:
                yield from self.expression(item)

    def expression(self, item: list[str]) -> Iterator[Item]:
        if item[-1:] == ["is"] or (item[-2:-1] == ["is"] and item[-1] == "("):
            yield from self.values(item[-2] if item[-1] == "is" else item[-3])
            return
        if item[-1:] == ["match"]:
            yield from self.members("variant")
            return
        if item and item[0] in ("let", "point", "next", "emit") and "=" not in item:
            return
        if item == ["yield"]:
            yield from self.members("output")
            return
        yield from self.members(*_BETWEEN)
        yield from self.locals()
        if item[-1:] not in (["when"], ["present"]):
            yield from (Item(op.name, "op", op.doc) for op in OPS.values() if not op.symbol)

    def seam(self, item: list[str]) -> Iterator[Item]:
        if item[-1:] == ["gate"]:
            yield from _words(words.METRICS)
        elif "from" in item:
            yield from self.members("value", "point", "input")

    def each(self, item: list[str]) -> Iterator[Item]:
        inside = self.at.around("binding") is not None
        yield from self.binding(item) if inside else self.expression(item)

    def arms(self, item: list[str]) -> Iterator[Item]:
        """Arms of a match: values of the axis, and what they become."""
        head = self.at.here.head
        subject = head[head.index("match") + 1] if head[-1] != "match" else ""
        if not item:
            yield from self.values(subject)
        elif item[-1] == "=>":
            if head[0] == "variant":
                yield from self.values(head[1])
                yield Item("refuse", "word", "the host is not this binding's")
            else:
                yield from self.expression(item)

    # ------------------------------------------------------------ impls and schemes

    def locals(self) -> Iterator[Item]:
        """Packs, scales and params of the impl around."""
        block = self.at.around("impl")
        if block is None or len(block.head) < 2:
            return
        for document in (self.document, self.document.good):
            for one in [] if document is None else document.occurrences:
                if one.defines and one.symbol[0] == "local" and one.symbol[1][-1] == block.head[1]:  # type: ignore[index]
                    yield Item(one.name, one.kind, outline(document or self.document, one))

    def impl(self, item: list[str]) -> Iterator[Item]:
        match item:
            case ["admits"]:
                yield from self.members("point", "input")
            case ["only"]:
                yield from self.members("variant")
            case ["only", axis, *_]:
                yield from self.values(axis)
            case ["rung"]:
                yield from _words(words.RUNGS)
            case ["form"]:
                yield from _words(words.FORMS)
            case ["band"]:
                yield from self.members("dim")
            case ["scale", _, "="]:
                yield from _words(words.SCALES)
            case ["scale", *_, "("]:
                yield from self.members("point")
            case ["pack" | "scale", _, "=", *rest]:
                if rest[-1:] == ["per"]:
                    yield from (Item(name, "word") for name in words.GRANULARITIES)
                    return
                yield from self.members("slot")
                yield from self.locals()
                if rest[-1:] == [","]:
                    yield from _words({**words.FORMATS, **words.PLAIN_FORMATS})
                yield from (Item(op, "op") for op in ("quantize", "cat"))

    def rung(self, item: list[str]) -> Iterator[Item]:
        match item:
            case ["rung"]:
                yield from _words(words.RUNGS)
            case ["lower"]:
                yield from (Item(op.name, "op", op.doc) for op in OPS.values())
            case ["only"]:
                yield from self.members("variant")
            case ["only", axis, *_]:
                yield from self.values(axis)
            case ["call", *_] if "(" in item:
                yield from self.locals()
                yield from self.members("point", "slot", "dim", "input")
            case ["call", "match"]:
                yield from self.members("variant")

    def numerics(self, item: list[str]) -> Iterator[Item]:
        if not item:
            yield from _words(words.NUMERICS)
        elif item == ["store"]:
            yield from self.members("value", "point")
        else:
            yield from (Item(name, "word", "dtype") for name in _DTYPES[1:])

    def scheme(self, item: list[str]) -> Iterator[Item]:
        if item[:1] == ["at"] and "use" not in item:
            yield from self.structures(item[1:])
        elif item[-1:] == ["use"]:
            yield from self.forms()

    def forms(self) -> Iterator[Item]:
        """Impls of the structure whose route this is."""
        route = self.item[1:]
        symbol = referred(route)
        if symbol is None:
            return
        whole, seam = self.ws.settled(symbol), seam_of(route)
        for document, one in self.ws.declarations("impl"):
            if self.ws.settled(one.symbol)[1:4] == (*whole[1:], seam):
                yield Item(one.name, "impl", outline(document, one))

    def statistics(self, item: list[str]) -> Iterator[Item]:
        if not item:
            yield from self.members("point")
        elif item[-1] == ":":
            yield from ((Item(n, "word", what)) for n, (_, what) in words.STATISTICS.items())
        elif item[-1] == "per":
            yield from (Item(name, "word") for name in words.GRANULARITIES)

    # ------------------------------------------------------------ bindings

    def binding(self, item: list[str]) -> Iterator[Item]:
        match item:
            case ["seat", _, ":", *rest] if "at" not in rest:
                yield from self.structures(rest)
            case ["seat", _, ":", structure, *rest] if rest[-1:] == ["at"] or "at" in rest:
                self.target = ("structure", structure, None)
                yield from self.paths("at")
            case ["chain", *rest]:
                yield from self.chain(rest)
            case ["group", _, "over" | "writer", *_]:
                yield from (Item(seat, "seat") for seat in self.seats())
            case ["pipeline"]:
                yield from self.declared("pipeline")
            case ["host"]:
                yield from (Item(name, "word", "package") for name in ("transformers", "diffusers"))
            case ["each", _, "in", *_]:
                yield from self.own_dims()

    def chain(self, rest: list[str]) -> Iterator[Item]:
        if rest[-1:] == ["wire"]:
            yield from (Item(name, "word") for name in words.CHAINED)
        elif rest[-1:] == ["."] and len(rest) > 1:
            self.target = self.seats().get(rest[-2])
            yield from self.members("input", "output", "point", "value")
        elif not rest or rest[-1] == "->":
            yield from (Item(seat, "seat") for seat in self.seats())

    def seat(self, item: list[str]) -> Iterator[Item]:
        match item:
            case ["slot"]:
                yield from self.members("slot")
            case ["slot", *_]:
                yield from self.weight(item)
            case ["point"]:
                yield from self.members("point")
            case ["point", name, *_] if item[-1] == "of":
                yield from self.paths(name)
            case ["variant"]:
                yield from self.members("variant")
            case ["variant", axis, "="]:
                yield from self.values(axis)
            case ["variant" | "param", _, "=", *_]:
                yield from self.own_dims()
            case ["param"]:
                yield from self.members("param")
            case ["part"]:
                yield from self.members("part")
            case ["form"]:
                yield from _words(words.FORMS)
            case ["form", "route", "("]:
                yield from (Item(name, "word", row[3]) for name, row in words.ROUTES.items())
            case ["expect"]:
                yield from (Item(name, "word", what) for name, (_, what) in words.FACTS.items())
            case ["expect", fact]:
                yield from (Item(name, "word") for name in words.FACT_VALUES.get(fact, ()))
            case ["boundary", "at"]:
                yield from self.paths("boundary")
            case ["tells"] | [*_, "tells"]:
                yield from self.members("variant")
            case ["role", *_] if "(" in item:
                yield from self.members("slot")

    def weight(self, item: list[str]) -> Iterator[Item]:
        """``slot w = path : layout`` behind its first word."""
        if item[-1] == ":":
            yield from _words(words.LAYOUTS)
        elif "=" in item:
            name = item[1] if item[0] == "slot" else item[0]
            yield from self.paths(name)
            yield from (Item(n, "word", what) for n, (_, _, what) in words.VIEWS.items())

    def slots(self, item: list[str]) -> Iterator[Item]:
        yield from self.weight(item) if item else self.members("slot")

    def boundary(self, item: list[str]) -> Iterator[Item]:
        match item:
            case []:
                yield from self.members("input", "output")
                yield Item("slot", "word", "a weight that lies outside the seat")
            case ["slot"]:
                yield from self.members("slot")
            case ["slot", *_]:
                yield from self.weight(item)
            case [name, *_] if item[-1] == "of":
                yield from self.paths(name)
            case [*_, ":"]:
                yield from _words(words.PORT_LAYOUTS)

    def dims(self, item: list[str]) -> Iterator[Item]:
        if not item:
            if self.at.around("seat") is not None:
                yield from self.members("dim")
        elif "=" in item and item[-1] != ".":
            yield from self.own_dims()
            yield Item("config", "word", "the host's config")

    # ------------------------------------------------------------ pipelines in bindings

    def of_pipeline(self, *kinds: str) -> Iterator[Item]:
        block = next((b for b in reversed(self.at.blocks) if b.head[:1] == ["pipeline"]), None)
        if block is None or len(block.head) < 2:
            return
        version = block.head[-1]
        owner = ("pipeline", block.head[1], int(version) if version.isdigit() else None)
        for name, (document, one) in self.ws.defined_in(self.ws.settled(owner)).items():
            if one.kind in kinds:
                yield Item(name, one.kind, outline(document, one))

    def pipeline_use(self, item: list[str]) -> Iterator[Item]:
        match item:
            case ["stage" | "loop" as kind]:
                yield from self.of_pipeline(kind)
            case [*_, "runs" | "writers" | "readers" | "("]:
                yield from self.of_pipeline("stage")

    def stage(self, item: list[str]) -> Iterator[Item]:
        match item:
            case ["window" | "buffer" | "state" as kind]:
                yield from self.of_pipeline(kind)
            case ["read" | "write" | "read_write", *_]:
                yield from self.of_pipeline("window", "buffer", "state")
            case [*_, "of"]:
                yield from self.paths("at")

    def coverage(self, item: list[str]) -> Iterator[Item]:
        match item:
            case ["segment", _, ":", _, "in"]:
                yield from self.of_pipeline("stage")
            case ["seats", *_]:
                yield from (Item(seat, "seat") for seat in self.seats())
            case ["covers", *_]:
                yield from self.declared("structure")


def _words(table: Iterable[str] | dict[str, object]) -> Iterator[Item]:
    """Words of a closed list, with what each means."""
    rows = table.items() if isinstance(table, dict) else ((name, "") for name in table)
    for name, what in rows:
        text = what if isinstance(what, str) else what[-1] if isinstance(what, tuple) else ""
        yield Item(name, "word", str(text))
