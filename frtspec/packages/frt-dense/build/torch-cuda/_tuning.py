"""Tuning rows: which tiles a product runs with, by device family, form, rows and columns.

The tables are data (``tuning/<family>.json``), written from measurements and reviewed;
nothing is measured when a model is bound or called. The first row that fits is taken.
"""

import functools
import json
from pathlib import Path

FOLDER = Path(__file__).parent / "tuning"


@functools.cache
def table(family: str) -> tuple[dict, ...]:
    """The rows of a device family, in order."""
    return tuple(json.loads((FOLDER / f"{family}.json").read_text())["rows"])


@functools.cache
def pick(family: str, op: str, fmt: str, rows: int, columns: int) -> dict | None:
    """The tuning row of a product, or None where the kernels for few rows don't serve it.

    op       ``gated`` or ``plain``
    rows     of x
    columns  of the output
    """
    for row in table(family):
        if row["op"] != op or row["format"] != fmt:
            continue
        if rows <= row["rows"] and columns >= row.get("columns", 0):
            return row
    return None
