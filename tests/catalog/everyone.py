"""Every mutant of the catalog, over several processes, in an order that is fair: whatever was
done when a run was stopped is a uniform sample, and the next run goes on from there."""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from functools import cache
from itertools import islice
from pathlib import Path

from mutants import Mutant, mutants
from verdicts import Seen, World

import frtspec

SEED = 20
BLOCK = 25
"""Mutants of one file that a process tries in one go."""

DEFAULTS = {
    "StructRef.version": "the version may be left out where a structure has one",
    "StatRequest.granularity": "a statistic is per tensor unless it says otherwise",
    "NumericsDecl.items": "a product adds up in f32 unless it says otherwise",
    "Call.args": "a softmax or a sum runs over the last axis unless it says otherwise",
    "AtDecl.params": "a param that a route does not set is what its impl says",
    "Match.arms": "a value of a config that no arm serves is refused",
    "StatusDecl": "what says no status is a draft",
}
"""Where a restated default can be left out. Each is proven by ``test_default``."""


@dataclass(frozen=True)
class Block:
    """Some mutants of a file, by their places among all of it.

    survived  what nothing notices because it is a default left out
    wrong     what nothing notices for no reason that is known
    """

    name: str
    places: list[int]
    survived: list[str]
    wrong: list[str]


def verdicts(world: World, name: str, places: Iterable[int]) -> Block:
    """Tries the mutants at these places, in rising order; places behind the last count for
    nothing."""
    others = world.needed(name)
    before = _before(world, name)
    assert not before.findings
    tried: list[int] = []
    survived: list[str] = []
    wrong: list[str] = []
    wanted = iter(places)
    at = next(wanted, None)
    for place, mutant in enumerate(mutants(world.files[name].tree)):
        if at is None:
            break
        if place != at:
            continue
        at = next(wanted, None)
        tried.append(place)
        shown = f"{name}{mutant.where}: {mutant.what} ({mutant.kind})"
        try:
            look = world.noticed(name, mutant.file, others, before)
        except Exception as error:  # noqa: BLE001 - whatever it is, the mutant is named
            wrong.append(f"brings the compiler down, {error!r}: {shown}")
            continue
        if look is None:
            continue
        if look.contracts() != before.contracts:
            wrong.append(f"declared and without consumer: {shown}")
        elif _kind(mutant) not in DEFAULTS:
            wrong.append(f"changes nothing: {shown}")
        else:
            survived.append(shown)
    return Block(name, tried, survived, wrong)


def _kind(mutant: Mutant) -> str:
    """What is left out, where the list that it is left out of says too little."""
    return "StatusDecl" if mutant.what == "without StatusDecl draft" else mutant.kind


def everyone(kept: Path | None, jobs: int, limit: int | None = None) -> list[Block]:
    """Every block of the catalog, or the first ``limit`` of the order.

    kept  a file that says what was done: lines of an earlier run are taken from it where the
          specs and the compiler are what they were then
    """
    state = _state()
    done: dict[tuple[str, int], Block] = {}
    if kept is not None and kept.exists():
        for line in kept.read_text().splitlines():
            row = json.loads(line)
            if row["state"] == state:
                done[row["name"], row["places"][0]] = Block(
                    row["name"], row["places"], row["survived"], row["wrong"]
                )
    left = [b for b in islice(_order(), limit) if (b[0], b[1][0]) not in done]
    with ProcessPoolExecutor(jobs) as pool:
        for future in as_completed([pool.submit(_block, *block) for block in left]):
            block = future.result()
            done[block.name, block.places[0]] = block
            if kept is not None:
                with kept.open("a") as file:
                    file.write(json.dumps({"state": state, **asdict(block)}) + "\n")
    return list(done.values())


def _order() -> Iterator[tuple[str, list[int]]]:
    """(file, places) of every block; the mutants of a file are dealt to its blocks in turn."""
    blocks: list[tuple[str, list[int]]] = []
    for name, file in _world().files.items():
        number = sum(1 for _ in mutants(file.tree))
        count = -(-number // BLOCK)
        blocks += [(name, list(range(first, number, count))) for first in range(count)]
    random.Random(SEED).shuffle(blocks)
    return iter(blocks)


def _block(name: str, places: list[int]) -> Block:
    return verdicts(_world(), name, places)


@cache
def _world() -> World:
    return World.of_catalog()


@cache
def _before(world: World, name: str) -> Seen:
    return world.seen(name, world.files[name].tree, world.needed(name))


def _state() -> str:
    """The digest of the specs, the compiler and these files."""
    digest = hashlib.sha256()
    package = Path(frtspec.__file__).parent
    code = [
        p
        for p in package.rglob("*.py")
        if p.relative_to(package).parts[0] not in ("runtime", "live")
    ]
    for path in sorted([*code, *Path(__file__).parent.glob("*.py")]):
        digest.update(path.read_bytes())
    for file in _world().files.values():
        digest.update(file.source.text.encode())
    return digest.hexdigest()


if __name__ == "__main__":
    kept, jobs, limit = Path(sys.argv[1]), int(sys.argv[2]), (*sys.argv[3:], None)[0]
    found = everyone(kept, jobs, None if limit is None else int(limit))
    tried = sum(len(block.places) for block in found)
    gone = sum(len(block.survived) for block in found)
    wrong = [line for block in found for line in block.wrong]
    print(*wrong, f"{tried} mutants, {gone} unnoticed, {len(wrong)} wrong", sep="\n")
