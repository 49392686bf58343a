"""Whether flash-rt's own modules and methods are where its bindings say.

The package lies around its catalog, so its sources can be looked at. They are parsed and
never imported; a catalog that lies alone has none, and nothing is said.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from frtspec.diag.diagnostic import Diagnostic
from frtspec.importers.flashrt.bindings import Host, Pipeline
from frtspec.importers.flashrt.catalog import INSIDE, PACKAGE, Catalog
from frtspec.importers.flashrt.yamldoc import Scalar
from frtspec.syntax.read import read_source

NATIVE = "FRT0898"

_METHOD = re.compile(r"\b([A-Z]\w*[a-z]\w*)\.([a-z_]\w*)")
"""``Pi05Pipeline.vision_encoder`` in a text."""


def problems(found: Pipeline, catalog: Catalog) -> Iterator[Diagnostic]:
    """Modules, classes and methods that are named and not there."""
    folder = catalog.folder
    package = folder.parent
    if (package.name, folder.name) != (PACKAGE, INSIDE) or not (package / "__init__.py").is_file():
        return
    classes: dict[str, ast.ClassDef] = {}
    for host in found.hosts:
        path = host.module_path
        if path is None or not path.text.startswith(f"{PACKAGE}."):
            continue
        module = _module(package, path.text)
        if module is None:
            yield _missing_module(host, path)
        else:
            classes.update((n.name, n) for n in module.body if isinstance(n, ast.ClassDef))
    for text in _texts(found):
        for owner, name in _METHOD.findall(text.text):
            held = classes.get(owner)
            if held is not None and not _has(held, name, classes):
                yield Diagnostic(
                    NATIVE,
                    f"`{owner}` has nothing called `{name}`",
                    text.span,
                    "warning",
                    help="kept as the source's words",
                )


def _missing_module(host: Host, path: Scalar) -> Diagnostic:
    return Diagnostic(
        NATIVE,
        f"`{path.text}` is no module or class of the package that the catalog lies in",
        path.span,
        "warning",
        help=f"host `{host.name.text}` is kept as the source names it",
    )


def _texts(found: Pipeline) -> Iterator[Scalar]:
    for stage in found.stages:
        yield from (value for _, value in stage.texts if isinstance(value.value, str))
        yield from (value for _, value in stage.outputs)
    yield from (segment.seam for segment in found.segments)


def _module(root: Path, dotted: str) -> ast.Module | None:
    """The parsed module that a path names, or that holds the class it names."""
    parts = dotted.split(".")[1:]
    if not all(part.isidentifier() for part in parts):
        return None
    whole = root.joinpath(*parts)
    for candidate in (whole.with_suffix(".py"), whole / "__init__.py"):
        tree = _parsed(candidate)
        if tree is not None:
            return tree
    tree = _parsed(root.joinpath(*parts[:-1]).with_suffix(".py"))
    named = tree is not None and any(
        isinstance(node, ast.ClassDef) and node.name == parts[-1] for node in tree.body
    )
    return tree if named else None


@cache
def _parsed(path: Path) -> ast.Module | None:
    source, _ = read_source(str(path))
    if source is None:
        return None
    try:
        return ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError):
        return None


def _has(held: ast.ClassDef, name: str, classes: dict[str, ast.ClassDef]) -> bool:
    """Whether the class, or a base that is known too, has the method or attribute. A base
    that is not known may have anything."""
    for node in ast.walk(held):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
            return True
        if isinstance(node, ast.Attribute) and node.attr == name:
            return True
        if isinstance(node, ast.Name) and node.id == name:
            return True
    for base in held.bases:
        if not isinstance(base, ast.Name):
            return True
        known = classes.get(base.id)
        if base.id != "object" and (known is None or _has(known, name, classes)):
            return True
    return False
