"""A draft binding as `.frt` text: what was found, as a person would write it."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from torch import nn

from frtspec.diag.source import SourceFile
from frtspec.ir.words import ROUTES
from frtspec.live.scan.config import Configs, Expression
from frtspec.live.scan.families import Block, Family, blocks, families, templated
from frtspec.live.scan.found import FoundSeat
from frtspec.live.scan.tree import Tree
from frtspec.runtime.spec import (
    InputOf,
    OutputOf,
    Place,
    Routed,
    RoutedInput,
    RoutedOutput,
    Weight,
)
from frtspec.syntax.fmt import format_source
from frtspec.syntax.grammar import RESERVED

_TAKEN = frozenset(
    {*RESERVED, "dims", "seats", "attach", "build", "structures", "impls", "schemes", "gates"}
)


def draft(
    tree: Tree, seats: Sequence[FoundSeat], name: str | None
) -> tuple[str, tuple[tuple[str, Family], ...]]:
    """(the text, formatted; seat name -> family) of a binding with these seats."""
    found = families(seats)
    configs = Configs(tree)
    layers = {f.stem: len(tree.modules[f.stem]._modules) for f in found if f.stem is not None}
    writer = _Writer(tree, configs, list(blocks(found, configs, layers)))
    text = writer.text(name or _snake(type(tree.model).__name__))
    result = format_source(SourceFile.from_text("draft.frt", text))
    if result.text is None:
        raise AssertionError(f"a draft that can't be read: {result.diagnostics[0]}\n{text}")
    return result.text, tuple(writer.named)


_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z0-9_]+)*")


def unwritable(seat: FoundSeat) -> str | None:
    """A path of the seat that a binding has no way to write: one that starts with a number,
    or has other signs than letters, digits and underscores."""
    weights = [
        w for held in seat.slots.values() for w in (held if isinstance(held, tuple) else (held,))
    ]
    inner = [w.path for w in weights] + [path for e in seat.expects for path in e.of]
    inner += [p.path for p in seat.points.values() if isinstance(p, InputOf | OutputOf)]
    paths = [
        seat.path,
        *(_relative(path, seat.path) for path in inner if path and path != seat.path),
    ]
    return next((path for path in paths if not _PATH.fullmatch(path)), None)


@dataclass
class _Writer:
    tree: Tree
    configs: Configs
    blocks: Sequence[Block]
    sizes: dict[str, Expression] = field(default_factory=dict)
    used: set[str] = field(default_factory=lambda: set(_TAKEN))
    named: list[tuple[str, Family]] = field(default_factory=list)

    def text(self, name: str) -> str:
        body = [line for block in self.blocks for line in self.block(block)]
        dims = [f"{dim.name} = {dim.text}" for dim in self.sizes.values()]
        head = [
            "frt 1",
            "",
            f"binding {name} {{",
            f'"""{type(self.tree.model).__name__} as scanned: a draft, to be read before it is used."""',
            "status draft",
            host_line(self.tree.model),
        ]
        if dims:
            head += ["", "dims {", ",\n".join(dims), "}"]
        return "\n".join([*head, "", *body, "}", ""])

    def block(self, block: Block) -> Iterator[str]:
        if block.stem is None:
            for family in block.families:
                yield from self.seat(family)
            return
        where = f" where {block.where}" if block.where else ""
        yield f"each i in {block.lo}..{self.bound(block)}{where} {{"
        for family in block.families:
            yield from self.seat(family)
        yield "}"
        yield ""

    def bound(self, block: Block) -> str:
        """The end of a range; a config field becomes a dim of the binding."""
        if block.hi.isdigit():
            return block.hi
        name = block.hi.rpartition(".")[2]
        where, _, field_name = block.hi.removeprefix("config.").rpartition(".")
        return self.dim(Expression(name, ((where, field_name),)))

    def dim(self, found: Expression) -> str:
        for known in self.sizes.values():
            if known.text == found.text:
                return known.name
        name = found.name
        while name in {known.name for known in self.sizes.values()} or name in _TAKEN:
            name += "_"
        self.sizes[name] = replace(found, name=name)
        return name

    # ------------------------------------------------------------ one seat

    def seat(self, family: Family) -> Iterator[str]:
        seat = family.seat
        name = self.name(family)
        self.named.append((name, family))
        at = self.path(seat.path, family)
        target = f"{seat.target} version {seat.structure.version}"
        yield f"seat {name} : {target} at {at} {{"
        sizes = [
            f"{dim} = {self.dim(found) if isinstance(found, Expression) else found}"
            for dim, found in sorted(self.configs.dims(seat).items())
        ]
        if sizes:
            yield f"dims {{ {', '.join(sizes)} }}"
        if seat.pattern.route is not None:
            yield f"form route ({_routed(seat.pattern.route)})"
        if seat.pattern.block:
            yield "form block"
        if seat.pattern.update:
            yield f"form update (cadence = {seat.cadence})  # a run does not show which"
        yield from self.settings(seat)
        yield from self.weights(seat)
        for point, place in seat.points.items():
            yield f"point {point} = {_place(place, seat.path)}"
        for point, reason in seat.pattern.placeless.items():
            yield f'point {point} none "{reason}"'
        yield from self.boundary(family)
        for expect in seat.expects:
            of = [_relative(path, seat.path) for path in expect.of]
            values = f"({', '.join(expect.values)})" if expect.fact == "class" else expect.values[0]
            about = "" if not of else f" of {of[0]}" if len(of) == 1 else f" of ({', '.join(of)})"
            yield f"expect {expect.fact} {values}{about}"
        yield "}"
        yield ""

    def settings(self, seat: FoundSeat) -> Iterator[str]:
        for axis in seat.structure.variants:
            if axis in seat.variants:
                why = seat.why.get(axis)
                yield f"variant {axis} = {seat.variants[axis]}" + (f"  # {why}" if why else "")
        given = {role.gives for role in seat.pattern.roles if role.gives}
        for param, value in seat.params.items():
            if param in given or value != seat.structure.params[param]:
                yield f"param {param} = {self.configs.number(seat.path, value) or _number(value)}"

    def weights(self, seat: FoundSeat) -> Iterator[str]:
        if seat.members:
            rows = [
                f"{slot}[{k}] = {_weight(weight, slot, seat.path)}"
                for slot, several in seat.slots.items()
                for k, weight in enumerate(several if isinstance(several, tuple) else (several,))
            ]
            yield "siblings prove (shared_input, call_order) {"
            yield ",\n".join(rows)
            yield "}"
            return
        for slot, weight in seat.slots.items():
            assert isinstance(weight, Weight)
            yield f"slot {slot} = {_weight(weight, slot, seat.path)}"

    def boundary(self, family: Family) -> Iterator[str]:
        boundary = family.seat.boundary
        if boundary is None:
            return
        if boundary.none is not None:
            yield f'boundary none "{boundary.none}"'
            return
        base = boundary.path or ""
        rows = [
            f"{name} = {_place(place, base)}{_layout(place)}"
            for name, place in (*boundary.inputs.items(), *boundary.outputs.items())
            if not isinstance(place, tuple)
        ]
        rows += [f"slot {slot} = {_weight(w, slot, base)}" for slot, w in boundary.slots.items()]
        yield f"boundary at {self.path(base, family)} {{ {', '.join(rows)} }}"

    def path(self, path: str, family: Family) -> str:
        return templated(path, family.stem, family.numbers[0])

    def name(self, family: Family) -> str:
        """A name after the module, longer where a shorter one is taken."""
        seat = family.seat
        words = [w for w in seat.path.split(".") if not w.isdigit()]
        if seat.members:
            words.append("pack")
        for count in range(2 if seat.members else 1, len(words) + 1):
            name = _word("_".join(words[-count:]))
            if name not in self.used:
                break
        base, number = name, 2
        while name in self.used:
            name, number = f"{base}_{number}", number + 1
        self.used.add(name)
        return name


def _weight(weight: Weight, slot: str, base: str) -> str:
    path = _relative(weight.path or "", base)
    layout = f" : {weight.layout}" if weight.layout else ""
    if weight.view == "chunks":
        path = f"chunks({path}, {', '.join(map(str, weight.args[1:]))})"
    elif weight.view == "part":
        path = f"part({path}, {', '.join(map(str, weight.args))})"
    elif weight.view != "param":
        path = f"{weight.view}({path})"
    return f"{path}{layout}"


def _place(place: Place, base: str) -> str:
    item = "" if place.item is None else f"[{place.item}]"
    if isinstance(place, RoutedInput | RoutedOutput):
        of = f" of {place.function}"
    else:
        at = _relative(place.path, base) if place.path != base else ""
        of = f" of {at}" if at else ""
    if isinstance(place, OutputOf | RoutedOutput):
        return f"output{item}{of}"
    return f"arg {place.arg}{item}{of}" if place.arg else f"input{of}"


def _routed(route: Routed) -> str:
    """The function alone where the language knows it, else with how it is found."""
    if route.name in ROUTES:
        return route.name
    return f"{route.name}, via = {route.via}, args = ({', '.join(route.args)})"


def _layout(place: Place) -> str:
    return f" : {place.layout}" if place.layout else ""


def _relative(path: str, base: str) -> str:
    return path[len(base) + 1 :] if base else path


def _number(value: float) -> str:
    return re.sub(r"e([+-])0*(\d+)$", r"e\1\2", repr(value))


# ---------------------------------------------------------------- the host


def host_line(model: nn.Module) -> str:
    """The package of the model's class, with the minor version that is installed; no
    version where the class comes from no distribution."""
    kind = type(model)
    top = kind.__module__.partition(".")[0]
    distributions: Mapping[str, Sequence[str]] = importlib.metadata.packages_distributions()
    names = distributions.get(top, ())
    if not names:
        return f"host {_word(top.removeprefix('frtspec_factory_'))} class {kind.__name__}"
    version = importlib.metadata.version(names[0])
    minor = ".".join(version.split(".")[:2])
    return f'host {_word(names[0])} "=={minor}.*" class {kind.__name__}'


def _word(text: str) -> str:
    word = re.sub(r"[^A-Za-z0-9_]", "_", text).lstrip("_") or "seat"
    return f"m{word}" if word[0].isdigit() else word


def _snake(text: str) -> str:
    return _word(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", text).lower())


__all__ = ["draft", "host_line"]
