"""Two sides compared: declarations paired by name and version, facts, judged events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from frtspec.closure import head
from frtspec.diff import binding, impl, pipeline, scheme, structure
from frtspec.diff.facts import Fact, Found, Subject
from frtspec.diff.rules import RULES, Level, Rule
from frtspec.diff.sides import (
    Key,
    Side,
    Texts,
    concerned,
    moved_files,
    names_in,
    read,
    structures,
)
from frtspec.ir import decl
from frtspec.ir.canon import Declaration, contract, dump
from frtspec.ir.ops import OPS
from frtspec.ir.walk import ops
from frtspec.lock import Row

VERSIONED = ("structure", "pipeline", "impl")


@dataclass(frozen=True)
class Pair:
    """A declaration on both sides. ``bumped``: the newer one is a new version of the older.
    ``draft``: the lock says that nobody was promised the older one yet."""

    subject: Subject
    old: Declaration | None
    new: Declaration | None
    digests: tuple[str, str]
    bumped: bool = False
    draft: bool = False

    @property
    def moved(self) -> bool:
        """Whether the contract digest of one version moved."""
        return not self.bumped and self.digests[0] != self.digests[1]


@dataclass(frozen=True)
class Event:
    """A fact, judged. ``verdict``: ``note``, ``warning`` or ``error``; ``says``: why.
    ``accepted``: the reason given, where somebody accepted it."""

    fact: Fact
    pair: Pair
    verdict: str
    says: str
    accepted: str | None = None

    @property
    def rule(self) -> Rule:
        return RULES[self.fact.rule]


@dataclass(frozen=True)
class Comparison:
    """``pairs``: what differs; ``events``: in order of place."""

    old: Side
    new: Side
    pairs: tuple[Pair, ...]
    events: tuple[Event, ...]

    @property
    def breaking(self) -> bool:
        return any(event.verdict == "error" for event in self.events)


def compare(old: Texts, new: Texts, *, drafts: bool = False) -> Comparison | tuple[Side, Side]:
    """Reads both sides and compares them; the sides alone where one has errors.

    drafts  judge drafts as if they were released
    """
    gone, come = moved_files(old, new)
    names = names_in(old, gone) | names_in(new, come)
    names |= {row.name.split(" ")[0] for row in old.unread}
    asked = [concerned(t, p, names) if names else set() for t, p in ((old, gone), (new, come))]
    if _moved_ops(old):
        asked[1] |= {path for path, s in new.files.items() if head(s.text).has("structure")}
    sides = read(old, asked[0]), read(new, asked[1])
    if any(side.diagnostics for side in sides):
        return sides
    return judged(sides, drafts=drafts)


def judged(sides: tuple[Side, Side], *, drafts: bool) -> Comparison:
    """The comparison of two sides that have no errors."""
    old, new = sides
    pairs: list[Pair] = []
    events: list[Event] = []
    for key in dict.fromkeys((*old.items, *new.items)):
        pair = _pair(key, old, new, drafts)
        if pair is not None:
            pairs.append(pair)
            events += _events(pair, sides)
    events += [
        judge(fact, pair) for pair in _gone(old, new, drafts) for fact in _retired(pair, new)
    ]
    for row in old.texts.unread:
        now = new.items.get(row.key)
        digest = "" if now is None else now[0].row.contract_digest
        draft = not drafts and _draft(row)
        pair = Pair(
            _subject(row.key), None, now and now[1], (row.contract_digest, digest), draft=draft
        )
        facts = _retired(pair, new) if now is None else (_unread(pair),)
        events += [judge(fact, pair) for fact in facts]
    events += _ops(old, new)
    return Comparison(old, new, tuple(pairs), tuple(sorted(events, key=_order)))


def _order(event: Event) -> tuple[Any, ...]:
    span = event.fact.new or event.fact.old
    return (str(event.fact.subject), span.start if span else -1, event.fact.id)


def _draft(row: Row) -> bool:
    return row.status in ("draft", "imported")


def _subject(key: Key) -> Subject:
    kind, name, version = key
    return Subject(kind, name, version if kind in VERSIONED else None)


# ---------------------------------------------------------------- pairs


def _pair(key: Key, old: Side, new: Side, drafts: bool) -> Pair | None:
    """The pair that a key of the newer side is half of; None where there is nothing to say."""
    if key not in new.items:
        return None
    item, now = new.items[key]
    if key in old.items:
        before_key, bumped = key, False
    else:
        earlier = [k for k in old.items if k[:2] == key[:2] and k[2] < key[2]]
        before_key, bumped = max(earlier, default=key, key=lambda k: k[2]), bool(earlier)
    before = old.items.get(before_key)
    if before is None:
        unread = {(row.kind, row.name) for row in old.texts.unread}
        if key in old.here or key[:2] in unread:
            return None
        return Pair(_subject(key), None, now, ("", item.row.contract_digest))
    rows = [(row.source_digest, row.contract_digest) for row in (before[0].row, item.row)]
    if not bumped and rows[0] == rows[1]:
        return None
    draft = not drafts and old.status(before_key) in ("draft", "imported")
    digests = rows[0][1], rows[1][1]
    return Pair(_subject(key), before[1], now, digests, bumped, draft)


def _gone(old: Side, new: Side, drafts: bool) -> Iterable[Pair]:
    if old.texts.single and new.texts.single:
        return
    locked = old.texts.rows or {}
    keys = set(old.items) | {k for k, row in locked.items() if row.status == "released"}
    for key in sorted(keys - new.here - {row.key for row in old.texts.unread}):
        if key not in old.items and key not in old.here:
            continue
        draft = not drafts and old.status(key) in ("draft", "imported")
        was = old.items.get(key)
        digest = was[0].row.contract_digest if was else locked[key].contract_digest
        yield Pair(_subject(key), was[1] if was else None, None, (digest, ""), draft=draft)


def _retired(pair: Pair, new: Side) -> Iterable[Fact]:
    subject = pair.subject
    row = (new.texts.rows or {}).get((subject.kind, subject.name, subject.version or 0))
    if row is not None and row.status == "retired" and row.migration:
        told = f"it is retired: {row.migration}"
        yield Fact("spec.retired.noted", subject, "", told, _place(pair.old))
    else:
        told = "it is declared no more, and the lock holds no migration note"
        yield Fact("spec.retired", subject, "", told, _place(pair.old))


def _unread(pair: Pair) -> Fact:
    if not pair.moved:
        told = "only its text moved"
        return Fact("text.only", pair.subject, "", told, None, _place(pair.new))
    told = "the contract moved, and no commit holds the text that was locked"
    return Fact("contract.unread", pair.subject, "", told, None, _place(pair.new))


def _place(declaration: Declaration | None) -> Any:
    return None if declaration is None else declaration.origin.span


# ---------------------------------------------------------------- facts and events


def _events(pair: Pair, sides: tuple[Side, Side]) -> list[Event]:
    facts = facts_of(pair, sides)
    events = [judge(fact, pair) for fact in facts]
    needs = [f for f in facts if RULES[f.rule].level >= Level.VERSION]
    if needs and not pair.bumped and pair.subject.kind in VERSIONED:
        told = f"{len(needs)} change{'s' if len(needs) > 1 else ''} of the contract, and it is "
        told += f"still version {pair.subject.version}"
        place = _place(pair.old), _place(pair.new)
        events.append(judge(Fact("version.missing", pair.subject, "", told, *place), pair))
    return events


def facts_of(pair: Pair, sides: tuple[Side, Side]) -> list[Fact]:
    """Every fact about one pair."""
    found = Found(pair.subject)
    if pair.old is None:
        found.add("spec.added", "", "it is new", None, pair.new)
        return found.facts
    _compare(pair, found, sides[0])
    if pair.bumped:
        if not found.facts and _plain(pair.old) == _plain(pair.new):
            told = f"version {pair.old.version} has the same contract"  # type: ignore[union-attr]
            found.add("version.idle", "", told, pair.old, pair.new)
    elif not pair.moved and not found.facts:
        found.facts += _texts(pair, sides)
    return found.facts


def _plain(declaration: Any) -> str:
    data = contract(declaration)
    data["declaration"].pop("version", None)
    return dump(data)


def _compare(pair: Pair, found: Found, older: Side) -> None:
    old, new = pair.old, pair.new
    match old, new:
        case decl.Structure(), decl.Structure():
            structure.compare(old, new, found)
        case decl.Impl(), decl.Impl():
            impl.compare(old, new, found)
        case decl.Scheme(), decl.Scheme():
            scheme.compare(old, new, found, structures(older).keys())
        case decl.AutoTable(), decl.AutoTable():
            scheme.auto(old, new, found)
        case decl.Binding(), decl.Binding():
            binding.compare(old, new, found)
        case decl.Pipeline(), decl.Pipeline():
            pipeline.compare(old, new, found)


def _texts(pair: Pair, sides: tuple[Side, Side]) -> list[Fact]:
    """What differs where the contract does not."""
    old, new = pair.old, pair.new
    assert old is not None and new is not None
    place = _place(old), _place(new)
    out = []
    for field in ("doc", "evidence", "discover"):
        if _docs(old, field) != _docs(new, field):
            word = {"doc": "the docs", "evidence": "evidence"}.get(field, "patterns of discovery")
            out.append(Fact("doc.changed", pair.subject, field, f"{word} moved", *place))
    texts = [_typed(item, side) for item, side in zip((old, new), sides, strict=True)]
    if texts[0] != texts[1]:
        told = "it is typed otherwise and reads as the same tree"
        out.append(Fact("reference.text", pair.subject, "reference", told, *place))
    if not out and _text(old, sides[0]) != _text(new, sides[1]):
        out.append(Fact("text.only", pair.subject, "", "only its text moved", *place))
    return out


def _text(declaration: Declaration, side: Side) -> tuple[str, str]:
    """The declaration's own text, and what stands outside of every declaration in its file."""
    span = declaration.origin.span
    text = side.sources[span.path].text
    spans = sorted(
        (item.span.start, item.span.end)
        for item, _ in side.items.values()
        if item.span.path == span.path
    )
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    outside = "".join(text[a:b] for a, b in zip(ends, starts, strict=True))
    return text[span.start : span.end], "".join(outside.split())


def _docs(declaration: Any, field: str) -> Any:
    value = getattr(declaration, field, None)
    return re.sub(r"span=Span\([^()]*\)", "", repr(value))


_COMMENT = re.compile(r'"[^"\n]*"|#[^\n]*')


def _typed(declaration: Any, side: Side) -> str:
    """The words of a reference, without layout and comments."""
    if not isinstance(declaration, decl.Structure) or not declaration.reference:
        return ""
    span = declaration.reference[0].span.to(declaration.reference[-1].span)
    text = side.sources[span.path].text[span.start : span.end]
    text = _COMMENT.sub(lambda m: "" if m[0].startswith("#") else m[0], text)
    return re.sub(r"\s+", "", text)


def judge(fact: Fact, pair: Pair) -> Event:
    """The fact as an event."""
    verdict, says = _verdict(RULES[fact.rule], pair)
    return Event(fact, pair, verdict, says)


def _verdict(rule: Rule, pair: Pair) -> tuple[str, str]:
    """Whether it passes, and why."""
    if rule.id == "version.idle":
        return "warning", "a new version for nothing"
    if pair.draft:
        return "note", "a draft: nobody was promised it yet"
    if rule.level <= Level.COMPATIBLE:
        return "note", "editorial" if rule.level == Level.EDITORIAL else "compatible"
    if rule.reviewed:
        return "error", "somebody has to accept it"
    if rule.level == Level.BREAKING:
        return "error", "breaking"
    if pair.bumped:
        return "note", "a new contract under a new version"
    if pair.subject.kind in VERSIONED:
        return "error", "it takes a new version"
    return "error", "it takes a name of its own, or somebody to accept it"


def _ops(old: Side, new: Side) -> Iterable[Event]:
    """Ops whose revision moved since the older side was locked."""
    moved = _moved_ops(old.texts)
    for key, (item, found) in new.items.items() if moved else ():
        if not isinstance(found, decl.Structure):
            continue
        for name in sorted({op.op for op in ops(found.reference)} & moved.keys()):
            told = f"op `{name}` went from revision {moved[name]} to {OPS[name].revision}"
            draft = old.status(key) in ("draft", "imported")
            digest = item.row.contract_digest
            locked = (old.texts.rows or {}).get(key)
            pair = Pair(
                _subject(key),
                found,
                found,
                (locked.contract_digest if locked else digest, digest),
                draft=draft,
            )
            fact = Fact("op.revision", pair.subject, f"op {name}", told, None, item.span)
            yield judge(fact, pair)


def _moved_ops(texts: Texts) -> dict[str, int]:
    """Op -> the revision that was locked, where it is another one now."""
    return {
        name: revision
        for name, revision in texts.ops.items()
        if name in OPS and OPS[name].revision != revision
    }


def accepted(event: Event, reason: str) -> Event:
    """The event as one that somebody accepted."""
    return replace(event, verdict="note", says="accepted", accepted=reason)


def by_subject(events: Iterable[Event]) -> Mapping[Subject, list[Event]]:
    out: dict[Subject, list[Event]] = {}
    for event in events:
        out.setdefault(event.fact.subject, []).append(event)
    return out
