"""``frtspec new structure NAME --bump``: the next version of a structure, begun from the last."""

from __future__ import annotations

import re
from pathlib import Path

from frtspec.files import write_atomically
from frtspec.ir.decl import Structure

_EVIDENCE = re.compile(
    r'^[ \t]*evidence\s+(?:"""[\s\S]*?"""|"(?:\\.|[^"\\\n])*")[ \t]*\n', re.MULTILINE
)
_STATUS = re.compile(r'^([ \t]*)status\s+\w+(?:[ \t]+"(?:\\.|[^"\\\n])*")?', re.MULTILINE)

HEAD = """\
# Version {new} is a contract of its own; version {old} stays beside it until nothing pins it.
# - `frtspec diff {old_file} {new_file}` says what each edit means for whoever pins version {old}.
# - A point that only gets another name says so: `point hidden = … was act_after_mul`.
# - A value of a variant that goes stays taken: `variant activation {{ … }} retired gelu`.
# - Evidence is of a version: that of version {old} was left there.
"""


def bumped(text: str, structure: Structure, version: int, files: tuple[str, str]) -> str:
    """The text of the next version: the same contract under the next number, as a draft,
    without evidence, and with remarks on what a new version may do.

    text   of the file that declares ``structure`` and nothing else
    files  names of the old and the new file, for the remarks
    """
    span = structure.origin.span
    body = text[span.start : span.end]
    head = re.compile(rf"\A(structure\s+{structure.name}\s+version\s+){structure.version}\b")
    body = head.sub(rf"\g<1>{version}", body, count=1)
    body = _EVIDENCE.sub("", body)
    body = _STATUS.sub(r"\1status draft", body, count=1)
    remarks = HEAD.format(old=structure.version, new=version, old_file=files[0], new_file=files[1])
    return f"frt 1\n\n{remarks}{body}\n"


def write(path: Path, text: str) -> None:
    """Raises ``FileExistsError`` where something stands there already, ``OSError`` else."""
    if path.exists() or path.is_symlink():
        raise FileExistsError(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, text.encode())
