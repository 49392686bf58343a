"""Where the two sides come from: files and folders, a commit, the lock."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from frtspec import resources, tomltext
from frtspec.config import Config
from frtspec.diag.diagnostic import Diagnostic
from frtspec.diag.source import NOWHERE, SourceFile
from frtspec.diff.sides import Key, Texts
from frtspec.lock import LOCK_NAME, Row, read_lock, read_ops
from frtspec.project import SUFFIX, shown, walk
from frtspec.syntax.read import decode, read_source

GIT, LOCK = "git:", "lock"
NO_SIDE = "FRT0920"
HISTORY = 200
"""Commits of one file that are looked through for the text of a locked digest."""


class NoSide(Exception):
    """A side that means nothing. ``diagnostics`` say why."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__(str(diagnostics[0]))
        self.diagnostics = diagnostics


def _none(message: str, help: str | None = None) -> NoSide:
    return NoSide(Diagnostic(NO_SIDE, message, NOWHERE, help=help))


def side(name: str | None, config: Config, here: Path, *, older: bool) -> Texts:
    """One side by what the user calls it: a path, ``git:REF``, ``git:REF:PATH``, ``lock``; None
    means ``lock`` for the older side and the project's spec roots for the newer one.

    Raises ``NoSide``.
    """
    if name is None:
        return _locked(config, here) if older else _working(config, here)
    if name == LOCK:
        return _locked(config, here)
    if name.startswith(GIT):
        ref, _, path = name.removeprefix(GIT).partition(":")
        return _commit(ref, path, config, here)
    return _path(name, config, here)


# ---------------------------------------------------------------- the working tree


def _working(config: Config, here: Path) -> Texts:
    roots = config.specs or (resources.specs_dir(),)
    files: dict[str, SourceFile] = {}
    for root in roots:
        files |= _files(walk(root), here)
    rows, ops = _locks([root / LOCK_NAME for root in roots], here)
    return Texts("the working tree", files, _catalog(here), rows, ops)


def _path(name: str, config: Config, here: Path) -> Texts:
    path = here / name
    if "\0" in name or not path.exists():
        raise _none(f"there is no file or folder `{name}`", "git:REF names a commit, lock the lock")
    if path.is_file():
        beside = dict(_catalog(here))
        for root in config.specs:
            beside |= _files(walk(root), here) if path.is_relative_to(root) else {}
        found = _files([path], here)
        return Texts(name, found, beside, *_lock_of(path, config, here), single=True)
    files = _files(walk(path), here)
    if not files:
        raise _none(f"`{name}` holds no .frt file", "give the folder that holds the specs")
    inside = [root for root in config.specs if path != root and path.is_relative_to(root)]
    beside = dict(_catalog(here))
    for root in inside:
        beside |= _files(walk(root), here)
    lock = path / LOCK_NAME
    rows, ops = _locks([lock if lock.exists() else r / LOCK_NAME for r in inside or [path]], here)
    return Texts(name, files, beside, rows, ops)


def _lock_of(
    path: Path, config: Config, here: Path
) -> tuple[Mapping[Key, Row] | None, Mapping[str, int]]:
    roots = [root for root in config.specs if path.is_relative_to(root)]
    return _locks([root / LOCK_NAME for root in roots], here)


def _files(paths: Iterable[Path], here: Path) -> dict[str, SourceFile]:
    out = {}
    for path in paths:
        source, problems = read_source(shown(path, here))
        if source is None:
            raise NoSide(*problems)
        out[source.path] = source
    return out


def _catalog(here: Path) -> dict[str, SourceFile]:
    return _files(walk(resources.specs_dir()), here)


def _locks(paths: Iterable[Path], here: Path) -> tuple[Mapping[Key, Row] | None, Mapping[str, int]]:
    sources = []
    for path in paths:
        if path.is_file():
            sources.append(tomltext.decode(shown(path, here), path.read_bytes()))
    return _rows(sources)


def _rows(
    sources: Sequence[SourceFile],
) -> tuple[Mapping[Key, Row] | None, Mapping[str, int]]:
    rows: dict[Key, Row] = {}
    ops: dict[str, int] = {}
    for source in sources:
        found, problems = read_lock(source)
        if problems:
            raise NoSide(*problems)
        rows |= {row.key: row for row in found}
        ops |= read_ops(source)
    return (rows if sources else None), ops


# ---------------------------------------------------------------- a commit


@dataclass(frozen=True)
class _Git:
    """The repository around a folder."""

    top: Path

    @staticmethod
    def around(folder: Path) -> _Git:
        done = _run(folder, "rev-parse", "--show-toplevel")
        if done is None:
            raise _none("this is no git repository", "give files or folders")
        return _Git(Path(done.decode().rstrip("\n")))

    def inside(self, path: Path) -> str:
        """The path in the repository, ``.`` for its top."""
        return path.resolve().relative_to(self.top.resolve()).as_posix()

    def names(self, ref: str, folder: str) -> list[str]:
        done = _run(self.top, "ls-tree", "-r", "-z", "--name-only", ref, "--", folder)
        return [name for name in (done or b"").decode("utf-8", "replace").split("\0") if name]

    def blobs(self, wanted: Sequence[str]) -> list[bytes | None]:
        """The contents of ``REF:PATH``, in order; None where there is none."""
        text = "".join(f"{name}\n" for name in wanted if "\n" not in name)
        out = _run(self.top, "cat-file", "--batch", given=text.encode()) or b""
        found: list[bytes | None] = []
        at = 0
        for _ in wanted:
            head, _, _ = out[at:].partition(b"\n")
            at += len(head) + 1
            if not head.split()[-1:] or not head.split()[-1].isdigit():
                found.append(None)
                continue
            size = int(head.split()[-1])
            found.append(out[at : at + size])
            at += size + 1
        return found

    def versions(self, path: str) -> list[str]:
        done = _run(self.top, "log", f"--max-count={HISTORY}", "--format=%H", "--", path)
        return (done or b"").decode().split()


def _run(folder: Path, *argv: str, given: bytes | None = None) -> bytes | None:
    """What git prints; None where it fails or is not there."""
    try:
        done = subprocess.run(
            ["git", *argv], cwd=folder, input=given, capture_output=True, check=False
        )
    except OSError:
        return None
    return done.stdout if done.returncode == 0 else None


def _commit(ref: str, path: str, config: Config, here: Path) -> Texts:
    git = _Git.around(here)
    if ref.startswith("-") or _run(git.top, "rev-parse", "--verify", f"{ref}^{{commit}}") is None:
        raise _none(f"there is no commit `{ref}`", "a branch, tag or hash: git:main, git:v1.2")
    roots = [here / path] if path else list(config.specs or (resources.specs_dir(),))
    names: list[str] = []
    for root in roots:
        try:
            names += git.names(ref, git.inside(root))
        except ValueError:
            told = f"`{shown(root, here)}` lies outside this repository"
            raise _none(told) from None
    specs = [n for n in names if n.endswith(SUFFIX)]
    locks = [n for n in names if n.rpartition("/")[2] == LOCK_NAME]
    label = f"{GIT}{ref}"
    files = _decoded(label, specs, git.blobs([f"{ref}:{name}" for name in specs]))
    texts = git.blobs([f"{ref}:{name}" for name in locks])
    rows, ops = _rows(
        [
            tomltext.decode(f"{label}:{name}", raw)
            for name, raw in zip(locks, texts, strict=True)
            if raw is not None
        ]
    )
    return Texts(f"{label}:{path}" if path else label, files, _catalog(here), rows, ops)


def _decoded(
    label: str, names: Sequence[str], raws: Sequence[bytes | None]
) -> dict[str, SourceFile]:
    out: dict[str, SourceFile] = {}
    for name, raw in zip(names, raws, strict=True):
        if raw is None:
            continue
        source, problems = decode(f"{label}:{name}", raw)
        if source is None:
            raise NoSide(*problems)
        out[source.path] = source
    return out


# ---------------------------------------------------------------- the lock


def _locked(config: Config, here: Path) -> Texts:
    """The texts that the locks were written for: those that still lie there, and of the
    others what the history of their files holds under the locked digest."""
    roots = config.specs or (resources.specs_dir(),)
    rows, ops = _locks([root / LOCK_NAME for root in roots], here)
    if rows is None:
        raise _none("there is no spec.lock here", "run `frtspec lock`, or compare with git:REF")
    now = _working(config, here)
    by_digest = {source.digest: source for source in now.files.values()}
    files: dict[str, SourceFile] = {}
    unread: list[Row] = []
    for row in rows.values():
        if row.status == "retired" and row.source_digest not in by_digest:
            continue
        source = by_digest.get(row.source_digest) or old_text(row, roots, here)
        if source is None:
            unread.append(row)
        else:
            files[source.path] = source
    return Texts(LOCK, files, _catalog(here), rows, ops, tuple(unread))


def old_text(row: Row, roots: Iterable[Path], here: Path) -> SourceFile | None:
    """The text of a row's digest, from the history of its file; None where none is found."""
    for root in roots:
        path = root / row.path
        try:
            git = _Git.around(here)
            name = git.inside(path)
        except (NoSide, ValueError):
            continue
        commits = git.versions(name)
        for commit, raw in zip(commits, git.blobs([f"{c}:{name}" for c in commits]), strict=True):
            if raw is not None and hashlib.sha256(raw).hexdigest() == row.source_digest:
                source, _ = decode(f"{GIT}{commit[:12]}:{name}", raw)
                return source
    return None
