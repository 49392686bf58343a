"""``[tool.frtspec]`` of a project's pyproject.toml.

::

    [tool.frtspec]
    specs = ["specs"]        # folders with .frt files; default: specs/, else the project folder
    out = "generated"        # where `frtspec gen` writes
    package = "my_kernels"   # the package it writes there; required for specs of one's own
"""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frtspec import tomltext
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import SourceFile, Span
from frtspec.diag.suggest import did_you_mean

CATALOG_PACKAGE = "flashrt_gen"
"""The package generated from the catalog; it is installed with frtspec."""

KEYS = ("specs", "out", "package")
_TABLE = "[tool.frtspec]"
_RESERVED = frozenset({CATALOG_PACKAGE, "frtspec", "torch", "transformers"})


@dataclass(frozen=True)
class Config:
    """What a project says about itself, paths made absolute.

    root     the folder of pyproject.toml, or the current folder where there is none
    specs    spec roots; empty when the project has none and only the catalog is meant
    out      folder that generated packages are written into
    package  name of the project's own generated package, or None
    """

    root: Path
    specs: tuple[Path, ...]
    out: Path
    package: str | None


@dataclass(frozen=True)
class ConfigResult:
    """``config`` is usable only when no diagnostic is an error.

    ``source`` is the pyproject.toml that the diagnostics point into, or None."""

    config: Config
    diagnostics: tuple[Diagnostic, ...] = ()
    source: SourceFile | None = None


def load_config(folder: Path) -> ConfigResult:
    """The configuration that holds in ``folder``: that of the nearest pyproject.toml,
    in the folder or above it, with a ``[tool.frtspec]`` table; defaults without one.

    Never raises on what a file holds: unknown keys, wrong types and broken TOML are
    diagnostics with a position.
    """
    for parent in (folder, *folder.parents):
        path = parent / "pyproject.toml"
        raw = _read(path)
        if raw is None or b"tool" not in raw or b"frtspec" not in raw:
            continue
        reader = _Reader(path.name if parent == folder else str(path), raw, parent)
        if reader.concerns_us():
            return reader.result()
    return ConfigResult(_defaults(folder))


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes() if path.is_file() else None
    except OSError:  # an unreadable file somewhere above is not this project's business
        return None


def _defaults(root: Path) -> Config:
    folder = root / "specs"
    return Config(root, (folder,) if folder.is_dir() else (), root / "generated", None)


class _Reader:
    """Reads one pyproject.toml and collects everything wrong with its table."""

    def __init__(self, shown: str, raw: bytes, root: Path) -> None:
        self.root = root
        self.source = tomltext.decode(shown, raw)
        self.found: list[Diagnostic] = []
        self.table: object = None
        self.fault: tomltext.TomlFault | None = None
        try:
            tool = tomltext.parse(self.source).get("tool")
        except tomltext.TomlFault as fault:
            self.fault = fault
        else:
            self.table = tool.get("frtspec") if isinstance(tool, dict) else None

    def concerns_us(self) -> bool:
        """Whether the file has our table; a broken one, whether its text names it."""
        if self.fault is not None:
            return (
                re.search(r"^\s*\[\s*tool\s*\.\s*frtspec\b", self.source.text, re.MULTILINE)
                is not None
            )
        return self.table is not None

    def result(self) -> ConfigResult:
        config = self._config()
        return ConfigResult(config, tuple(self.found), self.source)

    def _config(self) -> Config:
        defaults = _defaults(self.root)
        if self.fault is not None:
            self._report("FRT0851", f"not valid TOML: {self.fault.reason}", self.fault.span)
            return defaults
        if not isinstance(self.table, Mapping):
            self._report(
                "FRT0853", "`tool.frtspec` must be a table", self._key_span("frtspec"), _example()
            )
            return defaults
        self._check_keys(self.table)
        return Config(
            root=self.root,
            specs=self._specs(self.table),
            out=self.root / self._text(self.table, "out", "generated"),
            package=self._package(self.table),
        )

    # ------------------------------------------------------------ keys

    def _check_keys(self, table: Mapping[str, Any]) -> None:
        for key in table:
            if key not in KEYS:
                known = ", ".join(f"`{name}`" for name in KEYS)
                self._report(
                    "FRT0852",
                    f"unknown key `{key}` in {_TABLE}",
                    self._key_span(key),
                    did_you_mean(key, KEYS) or f"the keys are {known}",
                )

    def _specs(self, table: Mapping[str, Any]) -> tuple[Path, ...]:
        if "specs" not in table:
            folder = self.root / "specs"
            return (folder if folder.is_dir() else self.root,)
        value = table["specs"]
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            self._wrong_type("specs", 'a list of folders, for example ["specs"]')
            return ()
        roots = []
        for item in value:
            if not os.path.isdir(self.root / item):
                self._report(
                    "FRT0854",
                    f"the spec root `{item}` is no folder",
                    self._value_span("specs", item),
                    f"spec roots are relative to {self.source.path}; create it or correct the name",
                )
            else:
                roots.append(self.root / item)
        return tuple(dict.fromkeys(roots))

    def _text(self, table: Mapping[str, Any], key: str, default: str) -> str:
        value = table.get(key, default)
        if not isinstance(value, str) or not value or "\0" in value:
            self._wrong_type(key, f'a path, for example "{default}"')
            return default
        return value

    def _package(self, table: Mapping[str, Any]) -> str | None:
        if "package" not in table:
            return None
        value = table["package"]
        if not isinstance(value, str):
            self._wrong_type("package", 'a name, for example "my_kernels"')
            return None
        problem = package_problem(value)
        if problem:
            message, help = problem
            self._report("FRT0855", message, self._value_span("package", value), help)
            return None
        return value

    # ------------------------------------------------------------ reporting

    def _report(self, code: str, message: str, span: Span, help: str | None = None) -> None:
        self.found.append(Diagnostic(code, message, span, help=help))

    def _wrong_type(self, key: str, wanted: str) -> None:
        self._report("FRT0853", f"`{key}` must be {wanted}", self._key_span(key))

    def _section(self) -> tuple[int, int]:
        """Offsets of the text of our table; the whole file where it is written inline."""
        text = self.source.text
        head = re.search(r"^[ \t]*\[\s*tool\s*\.\s*frtspec\s*\]", text, re.MULTILINE)
        if head is None:
            return 0, len(text)
        following = re.compile(r"^[ \t]*\[(?=[^\]]*\][ \t]*(#.*)?$)", re.MULTILINE)
        end = following.search(text, head.end())
        return head.start(), end.start() if end else len(text)

    def _key_span(self, key: str) -> Span:
        start, end = self._section()
        quoted = re.escape(key)
        pattern = re.compile(rf"""(?<![\w-])(["']?){quoted}\1(?=\s*[=.\]])""")
        found = pattern.search(self.source.text, start, end)
        if found is None:
            return Span(self.source.path, start, start + len(_TABLE))
        return Span(self.source.path, found.start(), found.end())

    def _value_span(self, key: str, value: str) -> Span:
        key_span = self._key_span(key)
        for quote in ('"', "'"):
            written = f"{quote}{value}{quote}"
            start = self.source.text.find(written, key_span.end)
            if start >= 0:
                return Span(self.source.path, start, start + len(written))
        return key_span


def package_problem(name: str) -> tuple[str, str] | None:
    """Why a name can't be the project's generated package: (message, help), or None."""
    if name == CATALOG_PACKAGE:
        return (
            f"`{name}` is installed with frtspec and can't be extended",
            "give the project's package a name of its own",
        )
    if name in _RESERVED:
        return f"`{name}` would hide the package of that name", "choose another name"
    if not name.isidentifier() or keyword.iskeyword(name) or not name.isascii():
        return (
            f"`{name}` is no package name",
            "use one Python name of ASCII letters, digits and _, not starting with a digit",
        )
    return None


def _example() -> str:
    return 'write it as\n[tool.frtspec]\nspecs = ["specs"]\npackage = "my_kernels"'
