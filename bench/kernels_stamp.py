"""Writes the id of each shipped kernel package: its name and a digest of its content.

    python bench/kernels_stamp.py

`kernels` imports a package under its id, and two contents under one id would share
submodules, so every change of a package needs a new id.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

PACKAGES = Path(__file__).resolve().parent.parent / "frtspec" / "packages"


def stamp(variant: Path) -> str:
    """The id that belongs to the content of a build folder."""
    metadata = json.loads((variant / "metadata.json").read_text())
    digest = hashlib.sha256()
    for path in sorted(variant.rglob("*")):
        if path.is_file() and path.suffix in (".py", ".json") and path.name != "metadata.json":
            digest.update(path.relative_to(variant).as_posix().encode() + b"\0")
            digest.update(path.read_bytes() + b"\0")
    name = metadata["name"].replace("-", "_")
    return f"_{name}_{metadata['backend']['type']}_{digest.hexdigest()[:10]}"


def main() -> None:
    for path in sorted(PACKAGES.glob("*/build/*/metadata.json")):
        metadata = json.loads(path.read_text())
        metadata["id"] = stamp(path.parent)
        path.write_text(json.dumps(metadata, indent=2) + "\n")
        print(f"{path.parent.parent.parent.name}: {metadata['id']}")


if __name__ == "__main__":
    main()
