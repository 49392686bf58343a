"""The formatter behind one function. black is imported on the first call only."""

from __future__ import annotations

import ast
import importlib.metadata
from collections.abc import Callable
from functools import cache, partial

from frtspec.codegen.pysrc import WIDTH

BLACK_VERSION = "26.10.1"


class FormatterMissing(RuntimeError):
    """black is not installed, or is another version than the pinned one."""


class GeneratedSyntaxError(AssertionError):
    """A template or builder produced text that is no Python: our fault, never the user's."""


def format_python(text: str, name: str) -> str:
    """``text`` in black's form. ``name`` is the file it becomes, for messages.

    Raises ``FormatterMissing`` when the pinned black is not there.
    """
    try:
        ast.parse(text)
    except SyntaxError as error:
        raise GeneratedSyntaxError(f"{name}, line {error.lineno}: {error.msg}\n{text}") from error
    return _formatter()(text)


@cache
def _formatter() -> Callable[[str], str]:
    try:
        version = importlib.metadata.version("black")
        from black import Mode, format_str
        from black.mode import TargetVersion
    except ImportError as error:
        raise FormatterMissing(f"black {BLACK_VERSION} is not installed") from error
    if version != BLACK_VERSION:
        raise FormatterMissing(f"black {BLACK_VERSION} is needed, {version} is installed")
    # Every Python that generated code runs on, named, so that nothing is guessed from the text.
    targets = {TargetVersion[name] for name in ("PY311", "PY312", "PY313", "PY314")}
    return partial(format_str, mode=Mode(line_length=WIDTH, target_versions=targets))
