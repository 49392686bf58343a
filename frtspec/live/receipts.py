"""Receipts read from files: verified first, then shown, compared, and laid out as a matrix.

A receipt that does not verify says nothing: it is listed with what is wrong, and no figure
of it is used.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frtspec.runtime.receipt import Receipt, verify

SpecKey = tuple[str, str, int | None]
"""Kind, name and version of a spec."""

Digests = Mapping[SpecKey, str]
"""The contract digest of every spec there is now."""


@dataclass(frozen=True)
class Entry:
    """One file. ``receipt`` is None where it does not verify; ``problems`` says why."""

    file: str
    receipt: Receipt | None
    problems: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return Path(self.file).name

    def to_json(self) -> dict[str, Any]:
        digest = None if self.receipt is None else self.receipt["digests"]["receipt"]
        ok = self.receipt is not None
        return {"file": self.file, "ok": ok, "digest": digest, "problems": list(self.problems)}


def read(path: Path) -> Entry:
    """One receipt, verified."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return Entry(str(path), None, (f"the receipt can't be read: {error}",))
    verdict = verify(found)
    return Entry(str(path), found if verdict else None, verdict.problems)


def read_all(path: Path) -> list[Entry]:
    """The receipt in a file, or those of every ``.json`` file in a folder, by name."""
    if path.is_dir():
        return [read(file) for file in sorted(path.glob("*.json"))]
    return [read(path)]


# ---------------------------------------------------------------- one


def shown(entry: Entry) -> str:
    """A receipt in words: the host, the environment, each seat with its state and reason."""
    receipt = entry.receipt
    assert receipt is not None
    plan, environment, verdict = receipt["plan"], receipt["environment"], receipt["verdict"]
    host, calibration = plan["host"], plan["calibration"]
    lines = [
        f"{entry.name}: {verdict['summary']}",
        f"  digest       {receipt['digests']['receipt']}",
        f"  created      {receipt['created']} by {plan['door']}",
        f"  host         {_host(receipt)}, binding {host['binding']}",
        f"  scheme       {plan['scheme']['used']} (asked for: {plan['scheme']['asked']})",
        f"  device       {_device(receipt)}, {environment['system']}",
        f"  torch        {environment['packages']['torch']}",
    ]
    if calibration:
        lines.append(
            f"  calibration  {calibration['samples']} samples, {calibration['origin']}; judged on "
            f"{calibration['judged']} ({'held out' if calibration['held_out'] else 'fit residual'})"
        )
    counts = ", ".join(f"{count} {state}" for state, count in verdict["counts"].items() if count)
    lines.append(f"  seats        {counts or 'none'}")
    for seat in plan["seats"]:
        found = verdict["seats"][seat["name"]]
        form = f" {seat['impl']} on {seat['rung']}" if seat["rung"] else ""
        code = f" [{found['code']}]" if found["code"] else ""
        lines.append(
            f"    {seat['name']}  {found['state']}{form}  {seat['target']}: {found['reason']}{code}"
        )
    for unit in (*receipt["metrics"]["units"], *receipt["metrics"]["unions"]):
        speed = unit["latency"]
        figure = f", latency {speed['verdict']}: {speed['reason']}" if speed else ""
        judged = f"{unit['host']['verdict']}: {unit['host']['reason']}" if unit["host"] else "none"
        lines.append(f"  unit {unit['name']}  host gate {judged}{figure}")
    return "\n".join(lines) + "\n"


def _host(receipt: Receipt) -> str:
    host = receipt["plan"]["host"]
    return f"{host['class']} ({host['package']} {host['installed'] or 'not installed'})"


def _device(receipt: Receipt) -> str:
    device = receipt["environment"]["device"]
    capability = f" {device['capability']}" if "capability" in device else ""
    return f"{device['name']}{capability}"


# ---------------------------------------------------------------- two


@dataclass(frozen=True)
class Difference:
    """One value that two receipts don't share; None where one has no such value."""

    group: str
    at: str
    left: Any
    right: Any


GROUPS = ("specs", "host", "options", "environment", "seats", "states", "metrics")


def compared(left: Receipt, right: Receipt) -> list[Difference]:
    """What differs, by group: what they rest on, where they ran, what came out. When each was
    made is no difference."""
    mine, theirs = _grouped(left), _grouped(right)
    found = []
    for group in GROUPS:
        one, other = dict(_leaves(mine[group])), dict(_leaves(theirs[group]))
        for at in dict.fromkeys((*one, *other)):
            if one.get(at) != other.get(at):
                found.append(Difference(group, at, one.get(at), other.get(at)))
    return found


def _grouped(receipt: Receipt) -> dict[str, Any]:
    plan, verdict = receipt["plan"], receipt["verdict"]
    specs = {
        f"{row['kind']} {row['name']}" + (f" v{row['version']}" if row["version"] else ""): {
            "contract": row["contract_digest"],
            "source": row["source_digest"],
        }
        for row in receipt["specs"]
    }
    metrics = {
        **receipt["metrics"],
        "units": {unit["name"]: unit for unit in receipt["metrics"]["units"]},
        "unions": {unit["name"]: unit for unit in receipt["metrics"]["unions"]},
        "seats": {
            name: {gate["gate"]: gate for gate in gates}
            for name, gates in receipt["metrics"]["seats"].items()
        },
    }
    return {
        "specs": specs,
        "host": plan["host"],
        "options": {
            "door": plan["door"],
            "scheme": plan["scheme"],
            "calibration": plan["calibration"],
            **plan["options"],
        },
        "environment": receipt["environment"],
        "seats": {seat["name"]: seat for seat in plan["seats"]},
        "states": {
            "seats": verdict["seats"],
            "units": {unit["name"]: unit for unit in verdict["units"]},
            "unions": {unit["name"]: unit for unit in verdict["unions"]},
        },
        "metrics": metrics,
    }


def _leaves(value: Any, at: str = "") -> Iterator[tuple[str, Any]]:
    """Every plain value with the way to it."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from _leaves(item, f"{at}.{name}" if at else name)
    elif isinstance(value, list) and any(isinstance(item, dict | list) for item in value):
        for number, item in enumerate(value):
            yield from _leaves(item, f"{at}[{number}]")
    else:
        yield at, value


def differences(left: Entry, right: Entry, found: Sequence[Difference]) -> str:
    """The differences in words."""
    lines = [f"{left.name} and {right.name}: " + (f"{len(found)} differences" if found else "same")]
    for group in GROUPS:
        rows = [row for row in found if row.group == group]
        lines += [f"{group}"] if rows else []
        lines += [f"  {row.at}: {_told(row.left)} -> {_told(row.right)}" for row in rows]
    return "\n".join(lines) + "\n"


def _told(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# ---------------------------------------------------------------- many


@dataclass(frozen=True)
class Cell:
    """What one receipt says of one structure on one host.

    seats     how many seats the structure has there, ``states`` how many are in each state
    judged    whether gates decided (``attach``) or not (``build``)
    orphaned  specs whose contract is not what it was, with what became of each
    """

    host: str
    structure: str
    scheme: str
    device: str
    file: str
    created: str
    states: Mapping[str, int]
    judged: bool
    orphaned: tuple[str, ...]

    @property
    def seats(self) -> int:
        return sum(self.states.values())

    def __str__(self) -> str:
        bound = f"{self.states.get('bound', 0)}/{self.seats} bound"
        marks = ("" if self.judged else ", not judged") + (", orphaned" if self.orphaned else "")
        return f"{bound}, {self.scheme} on {self.device}{marks}"


@dataclass(frozen=True)
class Matrix:
    """Hosts by structures, and the receipts that say nothing."""

    cells: tuple[Cell, ...]
    damaged: tuple[Entry, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "cells": [{**vars(cell), "orphaned": list(cell.orphaned)} for cell in self.cells],
            "damaged": [entry.to_json() for entry in self.damaged],
        }

    def text(self) -> str:
        lines = []
        for host in dict.fromkeys(cell.host for cell in self.cells):
            lines.append(host)
            mine = [cell for cell in self.cells if cell.host == host]
            width = max(len(cell.structure) for cell in mine)
            for cell in mine:
                lines.append(f"  {cell.structure:<{width}}  {cell}  ({Path(cell.file).name})")
                lines += [f"  {'':<{width}}    {why}" for why in cell.orphaned]
        lines += ["damaged"] if self.damaged else []
        for entry in self.damaged:
            lines += [f"  {entry.name}", *(f"    {problem}" for problem in entry.problems)]
        return "\n".join(lines) + "\n"


def matrix(entries: Iterable[Entry], now: Digests) -> Matrix:
    """Each host with the structures that sit on it, newest receipt first. A cell is orphaned
    where the contract of its structure, binding, scheme or impl has moved since."""
    cells, damaged = [], []
    for entry in entries:
        if entry.receipt is None:
            damaged.append(entry)
        else:
            cells += list(_cells(entry, entry.receipt, now))
    cells.sort(key=lambda cell: cell.created, reverse=True)
    cells.sort(key=lambda cell: (cell.host, cell.structure))
    return Matrix(tuple(cells), tuple(damaged))


def _cells(entry: Entry, receipt: Receipt, now: Digests) -> Iterator[Cell]:
    plan, judged = receipt["plan"], receipt["verdict"]["seats"]
    for target in dict.fromkeys(seat["target"] for seat in plan["seats"]):
        seats = [seat for seat in plan["seats"] if seat["target"] == target]
        states: dict[str, int] = {}
        for seat in seats:
            state = judged[seat["name"]]["state"]
            states[state] = states.get(state, 0) + 1
        yield Cell(
            host=_host(receipt),
            structure=target,
            scheme=plan["scheme"]["used"],
            device=_device(receipt),
            file=entry.file,
            created=receipt["created"],
            states=states,
            judged=plan["door"] == "attach",
            orphaned=tuple(_moved(receipt, seats, now)),
        )


def _moved(receipt: Receipt, seats: Sequence[Mapping[str, Any]], now: Digests) -> Iterator[str]:
    """The specs under these seats whose contract is not what the receipt cites."""
    place, _, version = str(seats[0]["target"]).rpartition(" v")
    structure = place.partition(".")[0]
    impls = {f"{seat['impl']} for {seat['target']}" for seat in seats if seat["impl"]}
    for row in receipt["specs"]:
        kind, name = row["kind"], row["name"]
        mine = (
            kind in ("binding", "scheme")
            or (kind == "structure" and (name, str(row["version"])) == (structure, version))
            or (kind == "impl" and name in impls)
        )
        if not mine:
            continue
        known = now.get((kind, name, row["version"]))
        what = f"{kind} {name}" + (f" version {row['version']}" if row["version"] else "")
        if known is None:
            yield f"{what} is not among the specs any more"
        elif known != row["contract_digest"]:
            yield f"{what}: its contract was {row['contract_digest'][:12]}, it is {known[:12]}"
