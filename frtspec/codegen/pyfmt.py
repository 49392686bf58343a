"""The formatter behind one function. black is imported on the first call only."""

from __future__ import annotations

import ast

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
    try:
        import black
    except ImportError as error:
        raise FormatterMissing(f"black {BLACK_VERSION} is not installed") from error
    if black.__version__ != BLACK_VERSION:
        raise FormatterMissing(f"black {BLACK_VERSION} is needed, {black.__version__} is installed")
    mode = black.Mode(line_length=WIDTH, target_versions={black.TargetVersion.PY311})
    return black.format_str(text, mode=mode)
