"""Templates: one per kind of generated file, filled with finished strings."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from frtspec import __version__, resources
from frtspec.codegen.abi import RUNTIME_ABI
from frtspec.codegen.manifest import sha256
from frtspec.codegen.pyfmt import BLACK_VERSION
from frtspec.codegen.pysrc import comment_text, pyrepr, text_literal

if TYPE_CHECKING:
    from jinja2 import Environment


def inputs_digest(template: str, view: object) -> str:
    """The digest of everything a file's text depends on.

    ``view`` is a frozen dataclass of strings, numbers and tuples, so that its ``repr``
    is the same in every process.
    """
    parts = (__version__, str(RUNTIME_ABI), BLACK_VERSION, template_text(template), repr(view))
    return sha256("\0".join(sha256(part) for part in parts))


def render(template: str, view: object) -> str:
    """The text before formatting. A name the view lacks is an error, never empty text."""
    return _environment().get_template(template).render(view=view, abi=RUNTIME_ABI)


@cache
def template_text(template: str) -> str:
    return _path(template).read_bytes().decode()


def _path(template: str) -> Path:
    return resources.templates_dir() / template


@cache
def _environment() -> Environment:
    # Imported here: a run with nothing to write must not pay for it.
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    environment = Environment(
        loader=FunctionLoader(template_text),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,
    )
    environment.filters["pyrepr"] = pyrepr
    environment.filters["text"] = text_literal
    environment.filters["comment"] = comment_text
    return environment
