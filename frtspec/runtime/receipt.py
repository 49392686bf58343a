"""Receipts: what was attached, on what, by which figures, in a form that can't be edited.

A receipt is JSON with a published schema (``schema()``). Each of its sections has a
digest, and one digest covers them all, so that any edited field is found by
``verify``. Digests show integrity, not who wrote the receipt.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from jsonschema.protocols import Validator

SCHEMA = "frtspec.receipt/2"
SECTIONS = ("specs", "plan", "environment", "metrics", "costs", "verdict")

Receipt = dict[str, Any]


@dataclass(frozen=True)
class Verification:
    """True when a receipt is whole; else ``problems`` says what is wrong, all of it."""

    problems: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.problems


def canonical(value: Any) -> bytes:
    """The bytes that a digest is made of. Raises ValueError for NaN and Inf."""
    text = json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )
    return text.encode("utf-8", "surrogatepass")


def digest(value: Any) -> str:
    """sha256 of the canonical JSON, as hex."""
    return hashlib.sha256(canonical(value)).hexdigest()


def seal(document: Mapping[str, Any]) -> Receipt:
    """The receipt of a document that has ``created`` and every section."""
    plain: Receipt = json.loads(canonical({"schema": SCHEMA, **document}))
    plain["digests"] = _digests(plain)
    return plain


def _digests(receipt: Receipt) -> dict[str, str]:
    found = {section: digest(receipt[section]) for section in SECTIONS}
    heads = {name: receipt[name] for name in ("schema", "created")}
    return {**found, "receipt": digest({**heads, **found})}


def verify(receipt: Receipt | str | os.PathLike[str]) -> Verification:
    """Checks a receipt, or the file it was saved to: schema, digests, and its own sense."""
    if isinstance(receipt, str | os.PathLike):
        try:
            receipt = json.loads(Path(receipt).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            return Verification((f"the receipt can't be read: {error}",))
    problems = _misfits(receipt)
    if problems:
        return Verification(tuple(problems))
    assert isinstance(receipt, dict)
    expected = _digests(receipt)
    problems = [
        f"{name}: the digest is {receipt['digests'][name]}, the content gives {value}"
        for name, value in expected.items()
        if receipt["digests"][name] != value
    ]
    return Verification(tuple(problems + _contradictions(receipt)))


def _misfits(receipt: Any) -> list[str]:
    """Where the receipt leaves its schema."""
    named = receipt.get("schema") if isinstance(receipt, dict) else None
    if isinstance(named, str) and named != SCHEMA and named.startswith("frtspec.receipt/"):
        return [
            f"$.schema: it is of {named}; this frtspec verifies {SCHEMA}: use the one that wrote it"
        ]
    return [f"{error.json_path}: {error.message}" for error in _validator().iter_errors(receipt)]


@cache
def _validator() -> Validator:
    from jsonschema import Draft202012Validator  # slow to import, and only verifying needs it

    return Draft202012Validator(schema())


def _contradictions(receipt: Receipt) -> list[str]:
    """Sections that don't fit each other."""
    listed = [seat["name"] for seat in receipt["plan"]["seats"]]
    judged = receipt["verdict"]["seats"]
    found = []
    if sorted(listed) != sorted(judged):
        found.append("verdict.seats does not list the seats of plan.seats, each once")
    counts = {state: 0 for state in receipt["verdict"]["counts"]}
    for seat in judged.values():
        counts[seat["state"]] += 1
    if counts != receipt["verdict"]["counts"]:
        found.append(f"verdict.counts does not add up: the seats give {counts}")
    return found


def schema() -> dict[str, Any]:
    """The JSON schema of receipts (draft 2020-12)."""
    text = resources.files("frtspec.runtime").joinpath("receipt.schema.json").read_text("utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def save(receipt: Receipt, path: str | os.PathLike[str]) -> Path:
    """Writes atomically: the file is the whole receipt or does not change.

    ``path`` is a file, or a folder that gets ``receipt_<digest>.json``. Returns the file.
    """
    target = Path(path)
    if target.is_dir():
        target = target / f"receipt_{receipt['digests']['receipt'][:12]}.json"
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with open(handle, "w", encoding="utf-8") as file:
            json.dump(receipt, file, indent=2, ensure_ascii=False, allow_nan=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
    return target
