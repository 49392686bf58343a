"""The closed table of facts that a rule may ask of a host, and where each is measured.

A rule on sizes needs no fact. What a size can't say (how often a value changes, what a
convolution overlaps, which dtype arrives) is measured on the live host, and a rule names
the fact: ``require { steps(cond) <= 64 }``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """``of``: what it is about: ``seat`` (written without an argument), ``content`` (a point
    of that kind), ``value`` (an input or a point), ``slot`` or ``state`` (an input that an
    output updates). ``unit``: count, ratio or word. ``where``: module (the host as it
    stands), calls (how the host calls the seat) or capture (values kept over calls)."""

    of: str
    unit: str
    where: str
    text: str
    words: tuple[str, ...] = ()


FACTS: dict[str, Fact] = {
    "calls": Fact("seat", "count", "calls", "calls of the seat in one run of the host, the fewest"),
    "dtype": Fact(
        "value",
        "word",
        "calls",
        "the dtype that arrives",
        ("f64", "f32", "bf16", "fp16"),
    ),
    "steps": Fact("content", "count", "capture", "distinct values over the calls of one run"),
    "fingerprint_margin": Fact(
        "content",
        "ratio",
        "capture",
        "smallest distance of two distinct values at the coordinates that tell them best, "
        "relative to their mean magnitude",
    ),
    "runs": Fact(
        "content",
        "count",
        "capture",
        "runs of blocked positions in an additive mask, the same for every row; rows that "
        "differ count one each",
    ),
    "drift": Fact(
        "content",
        "ratio",
        "capture",
        "largest change between calls of one run, relative to the largest magnitude",
    ),
    "prefix_drift": Fact(
        "content",
        "ratio",
        "capture",
        "`drift` of the positions before the queries' own: keys [heads, positions, width]",
    ),
    "table": Fact(
        "value",
        "word",
        "calls",
        "whether a position table has a row for each token of each batch row",
        ("per_token", "shared"),
    ),
    "kept": Fact(
        "state",
        "word",
        "module",
        "whether the host hands the state in and takes it back",
        ("explicit", "hidden"),
    ),
    "repeats": Fact(
        "value",
        "word",
        "capture",
        "whether the host gives the same bits for the same inputs",
        ("exact", "inexact"),
    ),
    "kernel": Fact(
        "slot",
        "word",
        "module",
        "how a convolution's kernel lies to its stride",
        ("stride", "overlapping", "apart"),
    ),
    "conv_rank": Fact("slot", "count", "module", "axes that a convolution slides over"),
    "padding": Fact("slot", "count", "module", "padding of a convolution, the largest of its axes"),
    "dilation": Fact("slot", "count", "module", "dilation of a convolution, the largest"),
    "groups": Fact("slot", "count", "module", "groups of a convolution"),
    "other_children": Fact(
        "seat",
        "count",
        "module",
        "children of the seat's module with parameters that no slot, part or seat names",
    ),
}

MECHANISMS = {
    "step_table": "styles of a conditioning kept in a table, found by a fingerprint",
    "style_broker": "one buffer of styles for all producers on a stream",
    "packed_kv": "keys and values packed to the positions that a mask leaves",
    "static_buffer": "a result kept in a buffer that the caller refreshes",
    "sibling_stash": "one product for modules that share an input",
    "fp8_wire": "an input that comes in FP8 from the seat before it",
    "fixed_iteration": "a loop of a fixed number of steps, captured whole",
}
"""Ways to execute that a rule may be for, besides impls by name."""
