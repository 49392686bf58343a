"""Where the files that are no Python lie: the grammar, the templates and the catalog.

A wheel carries them in ``frtspec/_data``; a checkout (an editable install too) keeps
them in folders of their own beside the package.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


@cache
def _root() -> Path:
    data = _PACKAGE / "_data"
    return data if data.is_dir() else _PACKAGE.parent


def grammar_dir() -> Path:
    """The folder of ``frt.lark`` and ``errors.toml``."""
    return _root() / "grammar"


def templates_dir() -> Path:
    """The folder of the code templates."""
    return _root() / "templates"


def specs_dir() -> Path:
    """The root of the catalog that ships with frtspec."""
    return _root() / "specs"


def in_checkout() -> bool:
    """Whether the catalog is a working copy that may be written (no installed wheel)."""
    return _root() == _PACKAGE.parent


def catalog_package_dir() -> Path:
    """The folder of ``flashrt_gen``, the package generated from the catalog."""
    return (_root() / "generated" if in_checkout() else _PACKAGE.parent) / "flashrt_gen"
