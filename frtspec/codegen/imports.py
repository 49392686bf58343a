"""The imports of a generated file, by what its code mentions."""

from __future__ import annotations

import re
from collections.abc import Iterable

from frtspec.codegen.pysrc import imports


def import_lines(
    code: str, dims: Iterable[str], runtime: Iterable[str], generated: Iterable[str] = ()
) -> list[str]:
    """Imports in isort's order: the standard library and torch as ``code`` uses them, then
    the names wanted of ``frtspec.dims`` (may be none) and of ``frtspec.runtime``, among the
    lines for ``generated`` modules."""
    lines: list[str] = []
    if re.search(r"\bSequence\b", code):
        lines += ["from collections.abc import Sequence", ""]
    if re.search(r"\btorch\.", code):
        lines.append("import torch")
    lines.append("from torch import Tensor")
    if re.search(r"\bnnf\.", code):
        lines.append("from torch.nn import functional as nnf")
    lines.append("")
    ours = [*generated, f"from frtspec.runtime import {', '.join(_sorted(runtime))}"]
    if wanted := _sorted(dims):
        ours.append(f"from frtspec.dims import {', '.join(wanted)}")
    return [*lines, *imports(ours)]


def _sorted(names: Iterable[str]) -> list[str]:
    """Classes, then functions, as import sorters order them."""
    return sorted(names, key=lambda name: (name[0].islower(), name))
