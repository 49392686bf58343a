"""Loading kernel packages: one way in, and a reason for every way it fails.

Packages come through PyPI ``kernels``: from the folder that ``LOCAL_KERNELS`` names,
from the packages shipped with frtspec, or from the Hub (its cache when offline).
Publishers that the Hub does not trust are refused; nothing here ever lifts that.

A package that failed to load is not tried again in this process: half an import
leaves registered ops behind, and a second try would hide the first reason.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import os
import re
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from packaging.specifiers import SpecifierSet

from frtspec.runtime.errors import Refusal

CLIENT = SpecifierSet(">=0.17,<1")
"""Versions of the ``kernels`` package that this loader is written for."""

SHIPPED = Path(__file__).resolve().parents[2] / "packages"
"""Where rungs of kind ``local`` lie, one folder a package."""


@dataclass(frozen=True)
class LoadedKernel:
    """A kernel package that can be called.

    origin  where it came from
    digest  SHA-256 of the files of the build that was loaded
    """

    module: ModuleType
    package: str
    version: int | None
    origin: str
    digest: str = ""


Key = tuple[str, str, int | None, str | None]

_results: dict[Key, LoadedKernel | Refusal] = {}
_lock = threading.Lock()


def load(
    kind: str, package: str, version: int | None = None, entries: tuple[str, ...] = ()
) -> LoadedKernel:
    """The kernel package of a rung.

    kind      ``hub`` (``owner/name`` and a version) or ``local`` (a package shipped here)
    version   an int; the Hub has no ranges. A folder named by LOCAL_KERNELS has none,
              so there it is ignored
    entries   names the package must have

    Raises Refusal ``kernel.*``; the same one for the same package in this process.
    """
    key = (kind, package, version, os.environ.get("LOCAL_KERNELS"))
    with _lock:
        if key not in _results:
            try:
                _results[key] = _load(kind, package, version)
            except Refusal as refusal:
                _results[key] = refusal
        found = _results[key]
    if isinstance(found, Refusal):
        raise Refusal(found.code, found.what, fix=found.fix)
    missing = [name for name in entries if not callable(getattr(found.module, name, None))]
    if missing:
        raise Refusal(
            "kernel.entry",
            f"{_label(package, version)} ({found.origin}) has no {', '.join(missing)}",
            fix="install the version of the package that the impl names",
        )
    return found


def _load(kind: str, package: str, version: int | None) -> LoadedKernel:
    _check_client()
    local = _local_override(package)
    try:
        if kind == "local" and local is None:
            return _load_shipped(package, version)
        client = importlib.import_module("kernels")
        module = client.get_kernel(package, version=version)
    except Refusal:
        raise
    except Exception as error:
        raise _refusal(error, package, version, local) from error
    return LoadedKernel(module, package, version, _origin(client, module, local), digest_of(module))


def _load_shipped(package: str, version: int | None) -> LoadedKernel:
    folder = SHIPPED / package
    if not folder.is_dir():
        raise Refusal(
            "kernel.missing",
            f"{package} is not among the packages shipped with this frtspec ({SHIPPED})",
            fix="install a frtspec that ships it, or name a folder: "
            f"LOCAL_KERNELS='{package}=/path/to/it'",
        )
    module = importlib.import_module("kernels").get_local_kernel(folder)
    return LoadedKernel(module, package, version, "shipped with frtspec", digest_of(module))


def digest_of(module: ModuleType) -> str:
    """SHA-256 of every file beside a package's entry, with its name; "" where it has none."""
    if module.__file__ is None:
        return ""
    found, folder = hashlib.sha256(), Path(module.__file__).parent
    for path in sorted(
        p for p in folder.rglob("*") if p.is_file() and "__pycache__" not in p.parts
    ):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        found.update(f"{path.relative_to(folder).as_posix()} {content}\n".encode())
    return found.hexdigest()


def used(modules: Iterable[ModuleType | None]) -> tuple[LoadedKernel, ...]:
    """What is known of the packages that rungs run on, each once."""
    with _lock:
        loaded = [found for found in _results.values() if isinstance(found, LoadedKernel)]
    wanted = [module for module in modules if module is not None]
    by_package = {k.package: k for k in loaded if any(k.module is one for one in wanted)}
    return tuple(by_package[name] for name in sorted(by_package))


def _check_client() -> None:
    try:
        found = importlib.metadata.version("kernels")
    except importlib.metadata.PackageNotFoundError:
        raise Refusal(
            "kernel.client",
            f"kernel packages need `kernels` {CLIENT}, and it is not installed",
            fix=f"pip install 'kernels{CLIENT}'",
        ) from None
    if not CLIENT.contains(found, prereleases=True):
        raise Refusal(
            "kernel.client",
            f"kernel packages need `kernels` {CLIENT}; {found} is installed",
            fix=f"pip install 'kernels{CLIENT}'",
        )


def _local_override(package: str) -> str | None:
    """The folder that LOCAL_KERNELS names for a package."""
    listed = os.environ.get("LOCAL_KERNELS")
    if listed is None:
        return None
    found = None
    for entry in listed.split(":"):
        name, equals, path = entry.partition("=")
        if not equals:
            raise Refusal(
                "kernel.local_entry",
                f"LOCAL_KERNELS holds {entry!r}, which names no package",
                fix="write LOCAL_KERNELS='owner/name=/path:owner2/name2=/path2', with no "
                "trailing ':' and no ':' in a path",
            )
        if name == package:
            found = path
    if found is not None and not Path(found).is_dir():
        raise Refusal(
            "kernel.local_path",
            f"LOCAL_KERNELS names {found} for {package}, and there is no such folder",
            fix="point it at the folder of the package (the one that holds build/)",
        )
    return found


def _origin(client: ModuleType, module: ModuleType, local: str | None) -> str:
    if local is not None:
        return f"local override {local}, unpinned"
    for loaded in client.get_loaded_kernels():
        if loaded.module is module and loaded.repo_info is not None:
            return f"Hub, revision {loaded.repo_info.revision}"
    return "Hub"


def _label(package: str, version: int | None) -> str:
    return package if version is None else f"{package}@v{version}"


# ---------------------------------------------------------------- what went wrong


@dataclass(frozen=True)
class _Cause:
    """One kind of failure: told by exception type or text; ``fix`` may name {package}."""

    code: str
    matches: Callable[[BaseException, str], bool]
    what: str
    fix: str


def _text(pattern: str) -> Callable[[BaseException, str], bool]:
    compiled = re.compile(pattern, re.IGNORECASE | re.DOTALL)
    return lambda error, text: compiled.search(text) is not None


def _importing(error: BaseException, text: str) -> bool:
    """The package's own code raised while it was imported."""
    return any("while importing kernel" in note for note in getattr(error, "__notes__", ()))


def _kinds(*names: str) -> Callable[[BaseException, str], bool]:
    return lambda error, text: bool({cls.__name__ for cls in type(error).__mro__} & set(names))


_LOCAL = "LOCAL_KERNELS='{package}=/path/to/the/package'"

_CAUSES: tuple[_Cause, ...] = (
    _Cause(
        "kernel.import",
        _importing,
        "it was found, and its own code failed while it was imported",
        "see the reason above: a library it needs is missing, or its build does not fit this torch",
    ),
    _Cause(
        "kernel.client",
        _text(r"requires kernels>="),
        "it needs a newer `kernels`",
        "pip install --upgrade kernels",
    ),
    _Cause(
        "kernel.arch",
        _text(r"does not support the\s+current device"),
        "none of its builds is for this device",
        "use another rung on this device, or a version of the package that is built for it",
    ),
    _Cause(
        "kernel.untrusted",
        _text(r"not from a trusted publisher"),
        "its publisher is not trusted by the Hub, and frtspec runs no code of such",
        f"review the package, download it yourself and set {_LOCAL}",
    ),
    _Cause(
        "kernel.offline",
        _text(r"offline mode|outgoing traffic has been disabled|OfflineMode"),
        "the Hub is offline (HF_HUB_OFFLINE) and the package is not in the cache",
        f"download it while online (`kernels download`), or set {_LOCAL}",
    ),
    _Cause(
        "kernel.unreachable",
        _text(r"could not verify publisher trust"),
        "the Hub could not be asked who publishes it",
        f"check the network; without one set HF_HUB_OFFLINE=1 and fill the cache, or set {_LOCAL}",
    ),
    _Cause(
        "kernel.version",
        _text(r"version \S+ not found"),
        "the Hub has no such version of it",
        "use an impl that names a version that exists",
    ),
    _Cause(
        "kernel.dependency",
        _text(r"kernel dependency|requires Python dependency"),
        "a Python package that it depends on is missing",
        "install what the reason names",
    ),
    _Cause(
        "kernel.not_found",
        _kinds("RepositoryNotFoundError", "GatedRepoError", "RevisionNotFoundError"),
        "the Hub has no such package, or not for you",
        f"check its name, or set {_LOCAL}",
    ),
    _Cause(
        "kernel.unreachable",
        _kinds("ConnectError", "ConnectTimeout", "ReadTimeout", "ConnectionError", "TimeoutError"),
        "the Hub can't be reached",
        f"check the network; without one set HF_HUB_OFFLINE=1 and fill the cache, or set {_LOCAL}",
    ),
    _Cause(
        "kernel.metadata",
        _text(r"metadata\.json|metadata"),
        "its metadata can't be read",
        "rebuild the package: every build needs a metadata.json",
    ),
    _Cause(
        "kernel.no_build",
        _kinds("FileNotFoundError", "LocalEntryNotFoundError", "EntryNotFoundError"),
        "it has no build for this torch, backend and platform",
        "use a version of the package that is built for them, or another rung",
    ),
    _Cause(
        "kernel.import",
        _kinds("ImportError", "SyntaxError"),
        "its code can't be imported",
        "see the reason: a library it needs is missing, or its build does not fit this torch",
    ),
)


def _refusal(error: Exception, package: str, version: int | None, local: str | None) -> Refusal:
    """The one refusal for whatever ``kernels`` raised; its own words stay whole."""
    text = f"{type(error).__name__}: {error}"
    where = f" from {local} (LOCAL_KERNELS)" if local is not None else ""
    for cause in _CAUSES:
        if cause.matches(error, text):
            return Refusal(
                cause.code,
                f"{_label(package, version)}{where}: {cause.what} ({text})",
                fix=cause.fix.format(package=package),
            )
    return Refusal(
        "kernel.failed",
        f"{_label(package, version)}{where}: could not be loaded ({text})",
        fix=f"see the reason; to use a copy of your own set {_LOCAL.format(package=package)}",
    )


def forget() -> None:
    """Forget what was loaded and what failed (for tests that change the environment)."""
    with _lock:
        _results.clear()
