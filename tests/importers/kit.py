"""The installed catalog, read and imported once, and copies of it to break."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path

from frtspec import resources
from frtspec.cli.common import Run
from frtspec.cli.importing import specs_of
from frtspec.config import Config
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile
from frtspec.importers.flashrt import catalog as source
from frtspec.importers.flashrt.catalog import Catalog
from frtspec.importers.flashrt.convert import Imported, Specs, World, convert

COMMITTED = resources.specs_dir() / "bindings" / "flash_rt"


@cache
def folder() -> Path:
    """The installed package's catalog."""
    found, problems = source.find(None, Path.cwd())
    assert found is not None, problems
    return found


@cache
def world() -> World:
    """The catalog's specs but for bindings."""
    here = resources.specs_dir().parent
    config = Config(here, (resources.specs_dir(),), here / "generated", None)
    return World(specs_of(Run(here, config, {}, ())))


def read(folder: Path) -> Catalog:
    """A catalog, its files shown as paths inside it."""
    return source.read(folder, lambda path: path.relative_to(folder).as_posix())


@cache
def regions() -> Specs:
    """The structures that region bindings are about, which is all that those need."""
    wanted = ("decoder_ffn/v1", "vision_ffn/v2", "adaln_producer/v1")
    return [row for row in world().specs if row[0].path.endswith(tuple(f"{w}.frt" for w in wanted))]


@cache
def installed() -> Catalog:
    return read(folder())


@cache
def imported() -> Imported:
    return convert(installed(), world())


def copy(to: Path) -> Path:
    """A copy of the installed catalog without its Python, in ``to``/flash_rt/catalog."""
    target = to / "flash_rt" / "catalog"
    for path in folder().rglob("*.yaml"):
        place = target / path.relative_to(folder())
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    return target


def of_text(name: str, text: str) -> Catalog:
    """The installed structures and one binding of this text."""
    source_file = SourceFile.from_text(f"bindings/{name}.yaml", text)
    found: list[Diagnostic] = []
    bound = source.read_binding(source_file, name, installed().structures, found)
    bindings = {} if bound is None else {name: bound}
    return Catalog(
        folder(), installed().structures, bindings, {source_file.path: source_file}, tuple(found)
    )


@cache
def text_of(name: str) -> str:
    """The installed YAML of a binding."""
    return (folder() / "bindings" / f"{name}.yaml").read_text("utf-8")


def small(to: Path, *bindings: str) -> Path:
    """A copy with these bindings only."""
    target = copy(to)
    for path in (target / "bindings").glob("*.yaml"):
        if path.stem not in bindings:
            path.unlink()
    return target
