"""``frtspec cost``: what the seats of a binding cost on a device, before one is rented."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from frtspec import resources
from frtspec.cli.common import FINDINGS, OK, USAGE
from frtspec.cli.named import found_or_reported
from frtspec.devices import DEVICES
from frtspec.docgen.costs import read_sizes, short
from frtspec.docgen.seatcosts import SeatCost, Unsized, seat_costs

LEAST = 1.05
"""Gains below are not worth a word."""

_HEAD = ("seat", "times", "rows", "GFLOP", "MB", "of weights", "roofline", "bound by", "schemes")


def run(options: argparse.Namespace) -> int:
    """Prints a row a seat and row count; 1 where no seat has sizes, 2 for wrong options."""
    device = DEVICES[options.device]
    config = None
    if options.config is not None:
        try:
            config = json.loads(Path(options.config).read_text("utf-8"))
        except (OSError, ValueError) as error:
            return _usage(f"{options.config} is no config: {error}")
        if not isinstance(config, dict):
            return _usage(f"{options.config} is no config: it holds no JSON object")
    named = found_or_reported(options.binding, ("binding",))
    if isinstance(named, int):
        return named
    program = named.program
    binding = program.bindings[named.key]  # type: ignore[index]
    roots = (*named.config.specs, resources.specs_dir())
    try:
        sizes = [size for root in dict.fromkeys(roots) for size in read_sizes(root / "sizes.toml")]
    except ValueError as error:
        return _usage(str(error))
    found = list(seat_costs(program, binding, device, options.rows, config, sizes))
    sized = [one for one in found if isinstance(one, SeatCost)]
    unsized = [one for one in found if isinstance(one, Unsized)]
    if options.format == "json":
        body = {
            "binding": binding.name,
            "device": device.key,
            "seats": [asdict(one) for one in sized],
            "unsized": [asdict(one) for one in unsized],
        }
        print(json.dumps(body, indent=2))
    else:
        print(f"{binding.name} on an {device.name}: {device.bandwidth / 1e12:.2f} TB/s, ", end="")
        print(f"{device.peak['bf16'] / 1e12:.0f} TFLOP/s in bf16, as measured")
        print("rooflines are bounds from below for one seat, no measurements\n")
        print("\n".join(_table(sized)))
        print(f"\n2.00x: at best so many times faster; below {LEAST}x nothing is said", end="")
        print("; ?: the rate of its format was not measured on this device")
        for one in unsized:
            print(f"{one.seat} ({one.structure}): no figures: {one.why}")
    return OK if sized else FINDINGS


def _table(found: Sequence[SeatCost]) -> list[str]:
    rows = [_HEAD, *(_row(one) for one in found)]
    widths = [max(len(row[n]) for row in rows) for n in range(len(_HEAD))]
    lines = []
    where = None
    for row, one in zip(rows, (None, *found), strict=True):
        if one is not None and one.where != where:
            where = one.where
            lines.append(f"at the sizes of {where}:")
        cells = [row[0].ljust(widths[0]), *(row[n].rjust(widths[n]) for n in range(1, 8)), row[8]]
        lines.append("  ".join(cells).rstrip())
    return lines


def _row(one: SeatCost) -> tuple[str, ...]:
    forms = [f"{f.scheme} {f.gain:.2f}x" for f in one.forms if f.gain and f.gain >= LEAST]
    forms += [f"{form.scheme} ?" for form in one.forms if form.gain is None]
    return (
        f"{one.seat} : {one.structure}",
        "?" if one.times is None else str(one.times),
        str(one.rows),
        short(one.at.flops / 1e9),
        short(one.at.least / 1e6),
        short(one.at.weights / 1e6),
        f"{short(one.seconds * 1e6)} us",
        one.bound,
        ", ".join(forms) or "none",
    )


def _usage(message: str) -> int:
    print(f"frtspec cost: error: {message}", file=sys.stderr)
    return USAGE
