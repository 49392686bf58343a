"""Seats that differ only in the number of their layer, as one `each` of a binding."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from frtspec.live.scan.config import Configs
from frtspec.live.scan.found import FoundSeat
from frtspec.runtime.spec import Boundary, Expect, InputOf, OutputOf, Weight


@dataclass(frozen=True)
class Family:
    """``seat`` stands for all of them: the one of the first number, with ``{i}`` for it."""

    seat: FoundSeat
    stem: str | None
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Block:
    """Families that repeat over the same layers. ``lo``, ``hi`` and ``where`` as written."""

    families: tuple[Family, ...]
    stem: str | None = None
    lo: str = "0"
    hi: str = "0"
    where: str | None = None


def families(seats: Iterable[FoundSeat]) -> list[Family]:
    """Seats in groups that are equal but for one number in their paths."""
    groups: dict[object, list[tuple[int, FoundSeat]]] = {}
    for seat in seats:
        stem, number = _numbered(seat.path if not seat.members else seat.members[0])
        key = (stem, _shape(seat, stem, number))
        groups.setdefault(key, []).append((number, seat))
    out = []
    for (stem, _), found in groups.items():  # type: ignore[misc]
        numbers = tuple(sorted({number for number, _ in found}))
        out.append(Family(found[0][1], stem, numbers))
    return out


def _numbered(path: str) -> tuple[str | None, int]:
    """``model.layers.3.mlp`` is ``("model.layers", 3)``."""
    parts = path.split(".")
    for place, part in enumerate(parts):
        if part.isdigit() and place:
            return ".".join(parts[:place]), int(part)
    return None, 0


def templated(path: str, stem: str | None, number: int) -> str:
    """A path with ``{i}`` for the number of the layer."""
    if stem is None:
        return path
    head = f"{stem}.{number}"
    if path == head or path.startswith(f"{head}."):
        return f"{stem}.{{i}}{path[len(head) :]}"
    return path


def _shape(seat: FoundSeat, stem: str | None, number: int) -> tuple[object, ...]:
    """Everything of a seat that has to be equal in a family."""

    def text(value: object) -> object:
        match value:
            case str():
                return templated(value, stem, number)
            case Weight(path=path, layout=layout, view=view, args=args):
                return ("w", None if path is None else text(path), layout, view, args)
            case InputOf():
                return ("in", text(value.path), value.arg, value.item, value.layout)
            case OutputOf():
                return ("out", text(value.path), value.item, value.layout)
            case Expect(fact=fact, values=values, of=of):
                return (fact, values, text(of))
            case Boundary():
                parts = (value.path or "", value.inputs, value.outputs, value.slots)
                return (*(text(part) for part in parts), value.none)
            case tuple():
                return tuple(text(item) for item in value)
            case dict():
                return tuple((key, text(item)) for key, item in value.items())
            case _:
                return value

    return (
        seat.structure.key,
        seat.seam,
        text(seat.path),
        text(seat.members),
        tuple(sorted(seat.variants.items())),
        tuple(sorted(seat.params.items())),
        tuple(sorted(seat.dims.items())),
        text(dict(seat.slots)),
        text(dict(seat.points)),
        text(seat.boundary),
        text(seat.expects),
        seat.pattern.route and seat.pattern.route.name,
        seat.cadence,
        seat.form,
    )


# ---------------------------------------------------------------- which layers


def blocks(found: Sequence[Family], configs: Configs, layers: dict[str, int]) -> Iterator[Block]:
    """Families over the same layers together, in the order of the model. ``layers``: how many
    children each stem has."""
    grouped: dict[object, list[Family]] = {}
    for family in found:
        if family.stem is not None and len(family.numbers) == 1:
            family = _alone(family, layers[family.stem], configs)
        key = (family.stem, family.numbers) if family.stem else id(family)
        grouped.setdefault(key, []).append(family)
    for members in grouped.values():
        stem, numbers = members[0].stem, members[0].numbers
        if stem is None:
            yield Block(tuple(members))
            continue
        for lo, hi, where in _ranges(stem, numbers, layers[stem], configs):
            yield Block(tuple(members), stem, lo, hi, where)


def _alone(family: Family, count: int, configs: Configs) -> Family:
    """A family of one layer: by its number, unless the config says which layer it is."""
    stem, numbers = family.stem, family.numbers
    if stem is not None and _by_config(numbers, count, configs, f"{stem}.{numbers[0]}") is None:
        return replace(family, stem=None)
    return family


def _ranges(
    stem: str, numbers: tuple[int, ...], count: int, configs: Configs
) -> Iterator[tuple[str, str, str | None]]:
    """The numbers as ``lo..hi where …``; where no condition gives them, run by run."""
    path = f"{stem}.{numbers[0]}"
    known = configs.count(path, count)
    every = known.text if known else str(count)
    if numbers == tuple(range(count)):
        yield "0", every, None
        return
    where = _condition(numbers, count, configs, path)
    if where is not None:
        yield "0", every, where
        return
    for lo, hi in _runs(numbers):
        yield str(lo), every if hi == count else str(hi), None


def _condition(numbers: tuple[int, ...], count: int, configs: Configs, path: str) -> str | None:
    named = _by_config(numbers, count, configs, path)
    if named is not None:
        return named
    wanted = set(numbers)
    for step in range(2, 9):
        rest = numbers[0] % step
        if len(numbers) > 1 and wanted == {i for i in range(count) if i % step == rest}:
            return f"i % {step} == {rest}"
    return None


def _by_config(numbers: tuple[int, ...], count: int, configs: Configs, path: str) -> str | None:
    """The value of a list of the config that exactly these layers have."""
    wanted = set(numbers)
    for text, entries in configs.per_layer(path, count):
        values = {entries[i] for i in numbers if isinstance(entries[i], str | int)}
        if len(values) == 1 and {i for i, e in enumerate(entries) if e in values} == wanted:
            (value,) = values
            shown = f'"{value}"' if isinstance(value, str) else str(value).lower()
            return f"{text}[i] == {shown}"
    return None


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Neighbouring numbers as half-open ranges."""
    start = numbers[0]
    for before, after in zip(numbers, [*numbers[1:], -2], strict=True):
        if after != before + 1:
            yield start, before + 1
            start = after
