"""The words of messages: ``grammar/errors.toml``, read at the first error of a process."""

from __future__ import annotations

import tomllib
from functools import cache
from typing import Any

from frtspec.resources import grammar_dir


@cache
def wording() -> dict[str, Any]:
    """The tables ``words``, ``blocks``, ``habits``, ``mistake`` and ``continuations``."""
    return tomllib.loads((grammar_dir() / "errors.toml").read_text(encoding="utf-8"))
