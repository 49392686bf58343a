"""``frtspec receipts``: receipts verified, shown, compared, laid out by host and structure."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from frtspec.cli.common import FINDINGS, OK, USAGE, begin, counted, exit_code, progress, report
from frtspec.lock import declared
from frtspec.project import load, select

if TYPE_CHECKING:
    from frtspec.live.receipts import Digests, Entry


def run(options: argparse.Namespace) -> int:
    """Exits 1 where a receipt does not verify or two differ, 2 where there is nothing to
    read. Nothing of a receipt is shown that does not verify."""
    from frtspec.live.receipts import read_all

    entries: list[Entry] = []
    for name in options.paths:
        path = Path(name)
        if not path.exists():
            return _usage(f"there is no {name}")
        found = read_all(path)
        if not found:
            return _usage(f"{name} holds no .json file")
        entries += found
    return _ACTIONS[options.action](entries, options.format == "json")


def _usage(text: str) -> int:
    print(f"frtspec: {text}", file=sys.stderr)
    return USAGE


def _verify(entries: list[Entry], as_json: bool) -> int:
    damaged = [entry for entry in entries if entry.receipt is None]
    if as_json:
        _print_json({"receipts": [entry.to_json() for entry in entries]})
    else:
        for entry in entries:
            print(f"{entry.file}: {'whole' if entry.receipt else 'damaged'}")
            _print_problems(entry)
        print(f"{counted(len(entries), 'receipt')}, {len(damaged)} damaged")
    return FINDINGS if damaged else OK


def _show(entries: list[Entry], as_json: bool) -> int:
    from frtspec.live.receipts import shown

    damaged = [entry for entry in entries if entry.receipt is None]
    if as_json:
        _print_json(
            {"receipts": [{**entry.to_json(), "receipt": entry.receipt} for entry in entries]}
        )
        return FINDINGS if damaged else OK
    for entry in entries:
        if entry.receipt is not None:
            sys.stdout.write(shown(entry))
        else:
            print(f"{entry.file}: damaged")
            _print_problems(entry)
    return FINDINGS if damaged else OK


def _compare(entries: list[Entry], as_json: bool) -> int:
    from frtspec.live.receipts import compared, differences

    if len(entries) != 2:
        return _usage(f"two receipts are compared, not {len(entries)}")
    left, right = entries
    if left.receipt is None or right.receipt is None:
        return _verify(entries, as_json)
    found = compared(left.receipt, right.receipt)
    if as_json:
        _print_json(
            {
                "receipts": [left.to_json(), right.to_json()],
                "differences": [vars(row) for row in found],
            }
        )
    else:
        sys.stdout.write(differences(left, right, found))
    return FINDINGS if found else OK


def _matrix(entries: list[Entry], as_json: bool) -> int:
    from frtspec.live.receipts import matrix

    now = _digests()
    if isinstance(now, int):
        return now
    found = matrix(entries, now)
    if as_json:
        _print_json(found.to_json())
    else:
        sys.stdout.write(found.text())
    return FINDINGS if found.damaged else OK


def _digests() -> Digests | int:
    """The contract digests of every spec of the project and the catalog; an exit code where
    they can't be read."""
    setup = begin()
    if not setup.ok:
        report(setup.diagnostics, setup.sources)
        return exit_code(setup.diagnostics)
    with progress() as say:
        loaded = load(select((), setup.config, setup.here), say)
    if not loaded.ok:
        report(loaded.diagnostics, loaded.sources)
        return FINDINGS
    rows = [item.row for item in declared(loaded.program)]
    return {(row.kind, row.name, row.version): row.contract_digest for row in rows}


def _print_problems(entry: Entry) -> None:
    for problem in entry.problems:
        print(f"  {problem}")


def _print_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


_ACTIONS = {"verify": _verify, "show": _show, "compare": _compare, "matrix": _matrix}
