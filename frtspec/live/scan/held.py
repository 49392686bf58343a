"""Seats on modules whose result changes more slowly than their host runs them.

Only a run in which something is run again shows it: the steps of a denoising loop, the
tokens of a decoder. Two things tell such a module. It ran at every step and gave the same
each time, while what it is a part of did not; or it ran once, ahead of what is run again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from frtspec.live.scan.found import FoundSeat
from frtspec.live.scan.tree import Tree
from frtspec.live.scan.watch import Watched
from frtspec.runtime.hosts.patterns import Pattern
from frtspec.runtime.spec import Boundary, Expect, InputOf, OutputOf, StructureSpec

AGAIN, ONCE = "gave the same at every call", "ran once, ahead of what ran again"


def repeated(tree: Tree, seen: Watched) -> Iterator[str]:
    """The largest modules that ran again and gave the same, inside what did not."""
    if not seen.moved:
        return  # nothing changed in this run, so that nothing shows what is slow
    for path in tree.modules:
        if path and seen.calls.get(path, 0) > 1 and path not in seen.moved and _holds(tree, path):
            outer = _enclosing(path, seen)
            if outer is None or outer in seen.moved:
                yield path


def ahead(tree: Tree, seen: Watched, taken: Sequence[str]) -> Iterator[str]:
    """The largest modules that ran once, made of others, in a run of which a part ran again.
    One of several layers in a row is no whole.

    taken  modules that are regions of other structures: they are seats as they are
    """
    if not seen.moved:
        return
    for path in tree.modules:
        region = seen.calls.get(path) == 1 and tree.leaf(path) is None and _holds(tree, path)
        if path and region and path not in taken and not path.rpartition(".")[2].isdigit():
            outer = _enclosing(path, seen)
            if outer is None or seen.calls[outer] > 1 or outer in _around(seen):
                yield path


def seats(
    tree: Tree,
    seen: Watched,
    patterns: Sequence[tuple[StructureSpec, Pattern]],
    paths: Iterator[str],
    why: str,
) -> Iterator[FoundSeat]:
    """A seat on each of the modules that takes and gives one tensor."""
    for path in paths:
        several = sum(isinstance(held, tuple | list) for held in seen.arguments[path].values())
        one = path in seen.inputs and several < 2 and seen.returns.get(path) == "tensor"
        if not one or tree.trouble_below(path) is not None:
            continue
        for structure, pattern in patterns:
            yield _seat(tree, seen, path, structure, pattern, why)


def _seat(
    tree: Tree, seen: Watched, path: str, structure: StructureSpec, pattern: Pattern, why: str
) -> FoundSeat:
    places = {
        name: OutputOf(path) if at.kind == "output" else InputOf(path, at.arg)
        for name, at in {**pattern.ports, **pattern.points}.items()
    }
    output = next(name for name in pattern.ports if name in structure.outputs)
    width = structure.shapes[output][-1]
    symbols = sorted(width.symbols())
    return FoundSeat(
        structure=structure,
        pattern=pattern,
        path=path,
        variants=dict(pattern.variants),
        params=dict(structure.params),
        dims={symbols[0]: seen.outputs[path][-1]} if symbols else {},
        slots={},
        points={name: places[name] for name in pattern.points},
        claims=frozenset(tree.parameters_below(path)) if why == AGAIN else frozenset(),
        boundary=Boundary(
            path=path,
            inputs={n: places[n] for n in pattern.ports if n in structure.inputs},
            outputs={n: places[n] for n in pattern.ports if n in structure.outputs},
        ),
        expects=(Expect("returns", ("tensor",)),),
        proof=f"the run: it {why}",
        cadence="prompt" if seen.calls.get("", 0) > 1 else "observation",
    )


def _holds(tree: Tree, path: str) -> bool:
    return next(tree.modules[path].parameters(), None) is not None


def _around(seen: Watched) -> frozenset[str]:
    """Modules that ran once with something below them that ran again: the loop is inside."""
    found: set[str] = set()
    for path in seen.moved:
        outer = _enclosing(path, seen)
        while outer is not None and outer not in found:
            if seen.calls[outer] == 1:
                found.add(outer)
            outer = _enclosing(outer, seen)
    return frozenset(found)


def _enclosing(path: str, seen: Watched) -> str | None:
    """The nearest module around ``path`` that is called; None where none is."""
    while path:
        path = path.rpartition(".")[0]
        if seen.calls.get(path):
            return path
    return None
