"""``frtspec query``: what is declared, and who pins what."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator

from frtspec.cli.common import FINDINGS, OK, report
from frtspec.cli.named import UNKNOWN, keys_of, read
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import NOWHERE
from frtspec.diag.suggest import did_you_mean
from frtspec.ir.decl import Program

Row = dict[str, object]


def run(options: argparse.Namespace) -> int:
    """Prints a row a declaration, or who uses one; 1 where nothing is so called."""
    given = read()
    if isinstance(given, int):
        return given
    program = given[0].program
    if options.what == "users":
        if options.name is None:
            return _unknown("say whose users: `frtspec query users decoder_ffn@1`", None)
        keys = keys_of(program, ("structure", "pipeline", "scheme"))
        keys |= {i.name: ("impl", i.name) for i in program.impls.values() if i.name not in keys}
        if options.name not in keys:
            near = did_you_mean(options.name, keys)
            return _unknown(f"nothing is called `{options.name}`", near)
        rows = list(_users(program, options.name))
    else:
        rows = list(_LISTS[options.what](program))
        if options.name is not None:
            rows = [row for row in rows if row["name"] == options.name]
            if not rows:
                names = {str(row["name"]) for row in _LISTS[options.what](program)}
                near = did_you_mean(options.name, names)
                return _unknown(f"no {options.what[:-1]} `{options.name}`", near)
    print(json.dumps(rows, indent=2) if options.json else "\n".join(_lines(rows)))
    return OK


def _unknown(message: str, help: str | None) -> int:
    report([Diagnostic(UNKNOWN, message, NOWHERE, help=help)], {})
    return FINDINGS


def _structures(program: Program) -> Iterator[Row]:
    for (name, version), s in program.structures.items():
        yield {
            "name": name,
            "version": version,
            "status": s.status.name,
            "slots": [slot.name for slot in s.slots],
            "points": [point.name for point in s.points],
            "seams": [seam.name for seam in s.seams],
            "file": s.origin.path,
        }


def _pipelines(program: Program) -> Iterator[Row]:
    for (name, version), p in program.pipelines.items():
        stages = [stage.name for stage in p.stages]
        yield {"name": name, "version": version, "stages": stages, "file": p.origin.path}


def _impls(program: Program) -> Iterator[Row]:
    for impl in program.impls.values():
        rungs = [*impl.rungs, *(rung for band in impl.bands for rung in band.rungs)]
        yield {
            "name": impl.name,
            "for": _target(*impl.structure, impl.seam),
            "formats": sorted({p.format for p in impl.packs if p.format}),
            "rungs": list(dict.fromkeys(rung.kind for rung in rungs)),
            "file": impl.origin.path,
        }


def _schemes(program: Program) -> Iterator[Row]:
    for scheme in program.schemes.values():
        uses = [
            f"{_target(r.structure, r.structure_version, r.seam)} -> {r.use}"
            for r in scheme.routes
            if r.use is not None
        ]
        yield {"name": scheme.name, "uses": uses, "file": scheme.origin.path}


def _bindings(program: Program) -> Iterator[Row]:
    for binding in program.bindings.values():
        seats = [
            f"{seat.name} : {_target(*seat.structure, seat.seam)}"
            for group in binding.groups
            for seat in group.seats
        ]
        hosts = [f"{h.package} {h.versions or ''}".strip() for h in binding.hosts]
        yield {
            "name": binding.name,
            "status": binding.status.name,
            "hosts": hosts,
            "seats": seats,
            "pipelines": [f"{u.pipeline[0]}@{u.pipeline[1]}" for u in binding.pipelines],
            "file": binding.origin.path,
        }


_LISTS: dict[str, Callable[[Program], Iterator[Row]]] = {
    "structures": _structures,
    "pipelines": _pipelines,
    "impls": _impls,
    "schemes": _schemes,
    "bindings": _bindings,
}
WHAT = (*_LISTS, "users")


def _users(program: Program, name: str) -> Iterator[Row]:
    """Who pins a structure, pipeline, impl or scheme: ``decoder_ffn`` at any version,
    ``decoder_ffn@1`` at this one."""
    plain, _, number = name.partition("@")

    def meant(structure: str, version: int) -> bool:
        return structure == plain and number in ("", str(version))

    for (inner, version), s in program.structures.items():
        for slot in s.slots:
            if slot.inner is not None and meant(slot.inner.name, slot.inner.version):
                pins = f"{slot.inner.name}@{slot.inner.version}"
                yield {"kind": "structure", "name": f"{inner}@{version}", "pins": pins}
    for impl in program.impls.values():
        if meant(*impl.structure):
            pins = _target(*impl.structure, impl.seam)
            yield {"kind": "impl", "name": impl.name, "pins": pins}
    for scheme in program.schemes.values():
        for r in scheme.routes:
            if meant(r.structure, r.structure_version) or r.use == name:
                pins = _target(r.structure, r.structure_version, r.seam)
                use = f" use {r.use}" if r.use else " keep"
                yield {"kind": "scheme", "name": scheme.name, "pins": pins + use}
    for _, scheme_name in () if program.auto is None else program.auto.rows:
        if scheme_name == name:
            yield {"kind": "auto", "name": "auto", "pins": name}
    for binding in program.bindings.values():
        for group in binding.groups:
            for seat in group.seats:
                if meant(*seat.structure):
                    pins = _target(*seat.structure, seat.seam)
                    yield {"kind": "binding", "name": f"{binding.name}.{seat.name}", "pins": pins}
        for use_ in binding.pipelines:
            if meant(*use_.pipeline):
                pins = f"{use_.pipeline[0]}@{use_.pipeline[1]}"
                yield {"kind": "binding", "name": binding.name, "pins": pins}


def _target(structure: str, version: int, seam: str | None) -> str:
    return f"{structure}{'.' + seam if seam else ''}@{version}"


def _lines(rows: list[Row]) -> list[str]:
    """Columns; lists with commas."""
    if not rows:
        return ["none"]
    heads = list(rows[0])
    cells = [[_cell(row[head]) for head in heads] for row in rows]
    widths = [max(len(h), *(len(row[n]) for row in cells)) for n, h in enumerate(heads)]
    return [
        "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *cells)
    ]


def _cell(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
