"""Reads the fenced blocks of a Markdown file and what their info strings ask for.

A language example is a fence whose info string starts with ``frt``:

    ```frt check                     a whole file; it must be free of findings
    ```frt check as=part             the same, and later fences may build on it
    ```frt check with=part,catalog   checked together with earlier fences, or the catalog
    ```frt in structure              members, placed into ``frames/structure.frt``
    ```frt error FRT0301             a whole file that must report exactly this code
    ```frt error FRT0301 in seat     members that must report exactly this code
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Fence:
    """One fenced block. ``info`` is what follows the backticks, ``line`` where it opens."""

    info: str
    text: str
    path: str
    line: int

    @property
    def language(self) -> str:
        return self.info.split()[0] if self.info else ""


@dataclass(frozen=True)
class Example:
    """What a ``frt`` fence asks for; see the module's docstring."""

    fence: Fence
    codes: tuple[str, ...]
    frame: str | None
    name: str | None
    together: tuple[str, ...]

    @property
    def label(self) -> str:
        """Where the example stands, for the test's name."""
        return f"{self.fence.path}:{self.fence.line}"


def fences(path: Path) -> list[Fence]:
    """Every fenced block of the file, in order. Raises ``ValueError`` if one never closes."""
    found: list[Fence] = []
    info: str | None = None
    body: list[str] = []
    opened = 0
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if info is None:
            if line.startswith("```"):
                info, body, opened = line[3:].strip(), [], number
        elif line == "```":
            found.append(Fence(info, "\n".join(body) + "\n", path.name, opened))
            info = None
        else:
            body.append(line)
    if info is not None:
        raise ValueError(f"{path.name}:{opened}: this fence is never closed")
    return found


def example(fence: Fence) -> Example:
    """The example a ``frt`` fence asks for. Raises ``ValueError`` on an unknown word."""
    codes: list[str] = []
    frame = name = None
    together: tuple[str, ...] = ()
    words = iter(fence.info.split()[1:])
    for word in words:
        if word == "check":
            continue
        if word == "error":
            codes.append(next(words))
        elif word == "in":
            frame = next(words)
        elif word.startswith("as="):
            name = word.removeprefix("as=")
        elif word.startswith("with="):
            together = tuple(word.removeprefix("with=").split(","))
        else:
            raise ValueError(f"{fence.path}:{fence.line}: {word!r} says nothing about an example")
    return Example(fence, tuple(codes), frame, name, together)
