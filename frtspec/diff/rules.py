"""The one table of rules: what each kind of change means, for both of its readers.

Providers (impls, bindings, schemes) have to satisfy a contract; consumers (hosts, receipts)
were promised one. A change counts as the worse of the two. ``docs/rules.md`` is written from
this table.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

RULE_SET = 1
"""Raised when a row is added or its class moves."""


class Level(IntEnum):
    """How much a change is.

    EDITORIAL   nothing that anybody relies on moved
    COMPATIBLE  what was right stays right; the contract digest may move
    VERSION     a new contract: it takes a new version, beside the old one
    BREAKING    not even a new version makes it right
    """

    EDITORIAL = 0
    COMPATIBLE = 1
    VERSION = 2
    BREAKING = 3


E, C, V, B = Level.EDITORIAL, Level.COMPATIBLE, Level.VERSION, Level.BREAKING


@dataclass(frozen=True)
class Rule:
    """One kind of change.

    providers   its level for whoever satisfies the contract
    consumers   its level for whoever was promised it
    reviewed    a person has to accept it, even with a new version
    requalify   what pins the declaration has to be measured again
    acceptable  whether an acceptance can let it pass at all
    """

    id: str
    what: str
    providers: Level
    consumers: Level
    why: str
    fix: str
    reviewed: bool = False
    requalify: bool = False
    acceptable: bool = True

    @property
    def level(self) -> Level:
        return max(self.providers, self.consumers)


_VERSION = "Declare it as a new version beside the old one."
_MEASURE = "Attach again where it is used, and keep the new receipts."
_REVIEW = "Say why in `accept.toml`, and in the release notes."
_NONE = "Nothing to do."
_RIDE = "On a released version, let it ride with the next one: released bytes are frozen."

# One row is one rule; laid out by hand, so that the table stays one.
# fmt: off
_ROWS = (
    # text
    Rule("text.only", "layout, comments, order of what has none", E, E,
         "The contract digest is the same; the source digest is not.", _RIDE),
    Rule("doc.changed", "docs, evidence, patterns of discovery", E, E,
         "They are no part of the contract.", _RIDE),
    Rule("reference.text", "the reference is typed otherwise, and is the same tree", E, E,
         "Parentheses, spelling of numbers, line breaks: the contract digest is the same.", _RIDE),
    Rule("contract.changed", "a part of the contract that no other rule names", V, V,
         "What can't be told apart counts as a change.", _VERSION),
    Rule("contract.unread", "the digest moved, and the old text can't be found", V, V,
         "Only the lock knows the old version, and history holds no text of that digest.",
         "Compare with `git:REF`, where the old text is."),
    # the dataflow
    Rule("point.moved", "a point names another place of the dataflow", V, V,
         "What was measured there says nothing about the new place.", _VERSION),
    Rule("point.redefined", "a point's value is worked out otherwise", V, V,
         "Statistics of the old value don't fit the new one.", _VERSION),
    Rule("point.renamed", "a point has another name, and says so with `was`", V, V,
         "Bindings, schemes and calibration know it by name.", _VERSION),
    Rule("point.added", "a point that every seat has to map", V, C,
         "Bindings without it fail.", _VERSION),
    Rule("point.added.optional", "a point that only new combinations have", C, C,
         "No seat there is has it.", _NONE),
    Rule("point.removed", "a point is gone", V, V,
         "Bindings that map it and schemes that measure it fail.",
         "Declare a new version; where it only has a new name, write `was`."),
    Rule("point.kind", "a point is of another kind", V, V,
         "Only statistics reduce by percentile.", _VERSION),
    Rule("point.when", "a point is there under other conditions", V, V,
         "Seats map it that lack it, or lack it that have to.", _VERSION),
    Rule("reference.changed", "the reference computes something else", V, V,
         "It is the ground truth of every gate.", _VERSION),
    Rule("reference.extended", "the reference computes more, and the same as before", C, C,
         "Where both versions can be asked, they are the same ops.", _NONE),
    Rule("reference.equivalent", "the reference is written otherwise, the same ops", C, C,
         "Names inside don't count; the contract digest moves with them.",
         "Let it ride with the next version, and receipts keep their digest."),
    Rule("op.revision", "the meaning of an op moved with the compiler", V, V,
         "Specs with the same bytes compute something else.",
         "Lock again, and attach again wherever the op is used.", reviewed=True, requalify=True),
    Rule("seam.added", "a new seam", C, C,
         "Nobody names it yet.", _NONE),
    Rule("seam.removed", "a seam is gone", V, V,
         "Seats and impls name it.", _VERSION),
    Rule("seam.moved", "a seam has other ends", V, V,
         "Its slots, points and cost follow from them.", _VERSION),
    Rule("part.changed", "a part of the host is new, gone or called otherwise", V, V,
         "Bindings say where it is.", _VERSION),
    # sizes and numbers
    Rule("dim.loosened", "sizes are allowed that were not", V, E,
         "Impls have to take shapes that no receipt covers.", _VERSION),
    Rule("dim.tightened", "sizes are refused that were allowed", E, V,
         "Hosts outside are refused now.", _VERSION),
    Rule("dim.changed", "a rule on sizes became another one", V, V,
         "Neither follows from the other, as far as can be proven.", _VERSION),
    Rule("dim.equivalent", "a rule on sizes is written otherwise, and proven the same", C, C,
         "Each follows from the other.", _NONE),
    Rule("dim.renamed", "a dim has another name", V, E,
         "Seats and envelopes name dims, so whoever sets it has to follow.", _VERSION),
    Rule("dim.declared", "a new dim", V, V,
         "A seat has to determine it.", _VERSION),
    Rule("dim.removed", "a dim is gone", V, V,
         "Seats that set it fail.", _VERSION),
    Rule("index.changed", "an index is new or gone", V, V,
         "What is repeated changes its number.", _VERSION),
    Rule("param.added.optional", "a param with a default", C, C,
         "A seat that says nothing gets the default.", _NONE),
    Rule("param.added.required", "a param without a default", V, C,
         "Every seat has to set it.", _VERSION),
    Rule("param.removed", "a param is gone", V, V,
         "Seats that set it fail.", _VERSION),
    Rule("param.changed", "a param's default or limits moved", V, V,
         "A seat that says nothing computes something else.", _VERSION),
    # slots and ports
    Rule("slot.added.required", "a slot that every seat has to map", V, C,
         "Bindings without it fail.", _VERSION),
    Rule("slot.added.optional", "a slot that may be absent", C, C,
         "Without it the reference computes what it did.", _NONE),
    Rule("slot.removed", "a slot is gone", V, V,
         "Bindings that map it fail.", _VERSION),
    Rule("slot.required", "an optional slot has to be given", V, V,
         "Seats without it fail.", _VERSION),
    Rule("slot.optional", "a slot may be absent now", V, E,
         "Impls that read it always break on seats without it.", _VERSION),
    Rule("slot.dims", "a slot's shape, dtype or index moved", V, V,
         "Weights that fitted don't, and packs read another layout.", _VERSION),
    Rule("slot.when", "a slot is there under other conditions", V, V,
         "Seats map what they lack, or lack what they have to map.", _VERSION),
    Rule("slot.when.added", "a slot is there in new combinations too", C, C,
         "No seat there is has them.", _NONE),
    Rule("slot.inner", "the structure in a slot is another one, or moved", V, V,
         "It is part of what this one computes.", _VERSION),
    Rule("port.added.required", "an input that has to be given", V, V,
         "Every call lacks it.", _VERSION),
    Rule("port.added.optional", "an input that may be absent", C, C,
         "Without it the reference computes what it did.", _NONE),
    Rule("port.removed", "an input is gone", V, V,
         "Calls hand it over.", _VERSION),
    Rule("port.required", "an optional input has to be given", V, V,
         "Calls without it fail.", _VERSION),
    Rule("port.optional", "an input may be absent now", V, E,
         "Impls that read it always break on calls without it.", _VERSION),
    Rule("port.dims", "a port's shape, dtype or index moved", V, V,
         "Tensors that fitted don't.", _VERSION),
    Rule("port.when", "a port is there under other conditions", V, V,
         "Calls hand over what is not there, or lack what has to be.", _VERSION),
    Rule("port.when.added", "a port is there in new combinations too", C, C,
         "No seat there is has them.", _NONE),
    Rule("port.changed", "a port's default, scale, update or alias moved", V, V,
         "The same call gives another result.", _VERSION),
    Rule("port.reordered", "inputs stand in another order", V, V,
         "They are positional.", _VERSION),
    Rule("port.out.added", "a new output", V, V,
         "Outputs are positional, and impls have to give it.", _VERSION),
    Rule("port.out.removed", "an output is gone", E, V,
         "Hosts read it.", _VERSION),
    Rule("port.out.reordered", "outputs stand in another order", V, V,
         "They are positional.", _VERSION),
    # variants
    Rule("variant.value.added", "an axis has a new value", C, C,
         "Seats and impls say which values they are for.",
         "Say in each impl whether it serves it: `only`."),
    Rule("variant.value.removed", "a value of an axis is gone", V, V,
         "Seats that have it fail, and the name may come back with another meaning.",
         "Declare a new version, and keep the name taken: `retired`."),
    Rule("variant.value.retired", "a value is retired, its name stays taken", V, V,
         "Seats that have it fail.", _VERSION),
    Rule("variant.value.freed", "a retired name is free again", V, V,
         "Old receipts would be read as something else.", "Keep it `retired`.", reviewed=True),
    Rule("variant.value.reserved", "a name is taken that was no value", C, C,
         "No seat can have had it.", _NONE),
    Rule("variant.axis.added.default", "an axis with a default", C, C,
         "A seat that says nothing is what it was.", _NONE),
    Rule("variant.axis.added.required", "an axis without a default", V, C,
         "Every seat has to say.", "Give it a default, or declare a new version."),
    Rule("variant.axis.removed", "an axis is gone", V, V,
         "Seats that set it fail.", _VERSION),
    Rule("variant.default.added", "an axis has a default now", C, C,
         "A seat had to say so far.", _NONE),
    Rule("variant.default.changed", "an axis has another default, or none", V, V,
         "A seat that says nothing is something else.", _VERSION),
    Rule("variant.combinations.narrowed", "combinations exist no more", V, V,
         "Seats that have them fail.", _VERSION),
    Rule("variant.combinations.widened", "combinations exist that did not", V, E,
         "Impls have to say that they don't serve them.", _VERSION),
    # gates
    Rule("gate.tightened", "a bound is stricter", V, E,
         "Impls that passed may fail.",
         "Declare a new version; `--receipts` judges the figures there are.", requalify=True),
    Rule("gate.loosened", "a bound is weaker", E, V,
         "Hosts lose a promise, though every receipt still passes.", _REVIEW, reviewed=True),
    Rule("gate.metric.added", "a metric is judged or reported that was not", V, E,
         "Old receipts may hold no figure of it.", _VERSION, requalify=True),
    Rule("gate.metric.removed", "a metric is judged no more", E, V,
         "Hosts lose a promise.", _REVIEW, reviewed=True),
    Rule("gate.added", "a new gate", V, E,
         "Nothing was held to it.", _VERSION, requalify=True),
    Rule("gate.removed", "a gate is gone", E, V,
         "Hosts lose a promise.", _REVIEW, reviewed=True),
    Rule("gate.changed", "a gate is about something else", V, V,
         "Figures of the old one say nothing about it.", _VERSION, requalify=True),
    Rule("gate.baseline.added", "a baseline more to win against", V, E,
         "Old receipts may not have raced it.", _VERSION, requalify=True),
    Rule("gate.baseline.removed", "a baseline less to win against", E, V,
         "Hosts lose a promise.", _REVIEW, reviewed=True),
    # impls
    Rule("impl.numerics", "packs, scales, accumulation, stores or wire moved", V, V,
         "The same call gives other numbers.", _VERSION, requalify=True),
    Rule("impl.admits.widened", "dtypes are admitted that were not", C, C,
         "What ran runs as before.", _NONE),
    Rule("impl.admits.narrowed", "dtypes are admitted no more", V, V,
         "Seats that ran are refused.", _VERSION),
    Rule("impl.only.widened", "variants are served that were not", C, C,
         "What ran runs as before.", _NONE),
    Rule("impl.only.narrowed", "variants are served no more", V, V,
         "Seats that ran are refused.", _VERSION),
    Rule("ladder.rung.added.top", "a rung before those there were", C, C,
         "Something else runs wherever it loads.", _MEASURE, requalify=True),
    Rule("ladder.rung.added.tail", "a rung behind those there were", C, C,
         "It runs only where nothing did.", _NONE),
    Rule("ladder.rung.removed", "a rung is gone", C, C,
         "Something else runs where it did.", _MEASURE, requalify=True),
    Rule("ladder.rung.last", "a rung is gone on which a receipt rests alone", C, B,
         "No receipt shows that host and device on a rung that is left.",
         "Keep the rung, or attach there on another one and keep the receipt.", requalify=True),
    Rule("ladder.rung.reordered", "rungs stand in another order", C, C,
         "Something else runs where several load.", _MEASURE, requalify=True),
    Rule("ladder.rung.changed", "a rung is called otherwise", C, C,
         "The kernel gets other arguments.", _MEASURE, requalify=True),
    Rule("ladder.rung.envelope", "a rung takes other sizes", C, C,
         "Whoever lies outside falls to the next rung, whoever came inside to this one.",
         _MEASURE, requalify=True),
    Rule("hub.revision", "a kernel package has another version", C, C,
         "Other code runs.", _MEASURE, requalify=True),
    Rule("band.changed", "bands of rows are cut otherwise", C, C,
         "Something else runs at those sizes.", _MEASURE, requalify=True),
    # schemes
    Rule("scheme.route", "a scheme does something else at a structure", V, V,
         "The same call gives other numbers.",
         "Give the scheme a name of its own, or say why in `accept.toml`.", requalify=True),
    Rule("scheme.route.added", "a route for a structure that is new", C, C,
         "No binding there was had it.", _NONE),
    Rule("scheme.reason", "the reason to keep is told otherwise", C, C,
         "Nothing else runs.", _NONE),
    Rule("scheme.auto", "`auto` stands for another scheme somewhere", C, V,
         "The same call gives other numbers on that device.",
         _REVIEW, reviewed=True, requalify=True),
    # bindings
    Rule("binding.path", "something lies elsewhere on the host", C, C,
         "The structure is what it was; the binding's receipts are about other modules.",
         _MEASURE, requalify=True),
    Rule("binding.host.widened", "host versions or classes are bound that were not", C, C,
         "No receipt covers them.", _MEASURE, requalify=True),
    Rule("binding.host.narrowed", "host versions or classes are bound no more", C, C,
         "Hosts outside are refused, with the reason.", _NONE),
    Rule("binding.pin", "a seat or pipeline pins another version", C, C,
         "Nothing validates itself again.", _MEASURE, requalify=True),
    Rule("binding.seat.added", "a new seat", C, C,
         "More of the host is replaced.", _MEASURE, requalify=True),
    Rule("binding.seat.removed", "a seat is gone", C, C,
         "That part of the host runs as it came.", _MEASURE, requalify=True),
    Rule("binding.seat.changed", "a seat is set otherwise", C, C,
         "Variants, params, sizes or form are not what the receipts say.",
         _MEASURE, requalify=True),
    Rule("binding.link", "chains or groups between seats moved", C, C,
         "Wires carry other formats, or to others.", _MEASURE, requalify=True),
    Rule("binding.pipeline", "stages, loops or cadences on the host moved", C, C,
         "Another capture runs.", _MEASURE, requalify=True),
    Rule("binding.changed", "something else of a binding moved", C, C,
         "What no other rule names.", _MEASURE, requalify=True),
    Rule("pipeline.segment", "a segment of the hot path is covered otherwise", C, C,
         "The coverage moved, the family did not.", _MEASURE, requalify=True),
    # pipelines
    Rule("pipeline.changed", "stages, values, loops or rules of a pipeline moved", V, V,
         "Bindings say where each is.", _VERSION),
    Rule("pipeline.stage.optional", "a stage that a host may lack", C, C,
         "Bindings without it stay whole.", _NONE),
    Rule("pipeline.embeds.added", "a structure more that may make it up", C, C,
         "Nobody has to use it.", _NONE),
    # versions
    Rule("version.missing", "the contract changed, the version did not", B, B,
         "Whoever pins the version was promised the old contract.",
         "Restore the old text, and declare the change as a new version: `frtspec new "
         "structure NAME --bump`.", acceptable=False),
    Rule("version.idle", "a new version with the contract of the old one", E, E,
         "Receipts are orphaned and nothing is gained.", "Leave it out."),
    Rule("spec.added", "a new declaration", C, C,
         "Nobody pins it yet.", _NONE),
    Rule("spec.retired", "a version is gone", B, B,
         "Whoever pins it finds nothing.",
         "Keep it until nothing pins it; then write status `retired` and a `migration` note "
         "into spec.lock, and remove it.", acceptable=False),
    Rule("spec.retired.noted", "a retired version is gone, with a migration note", C, C,
         "Nothing here pins it, and the lock says where to go.",
         "Put the note into the release notes."),
)
# fmt: on

RULES: dict[str, Rule] = {rule.id: rule for rule in _ROWS}
"""Rule by its id."""
