"""Sizes of tensors: polynomials, shapes, rules and the one solver for them.

Pure standard library; used by the compiler, the runtime and generated code.
"""

from frtspec.dims.constraint import Constraint, at_least, at_most, between, divides, equal, one_of
from frtspec.dims.errors import DimError
from frtspec.dims.measured import Measured, measured
from frtspec.dims.poly import Axis, Poly, PolyLike, Shape, dims
from frtspec.dims.shape import (
    any_axis,
    axis,
    either,
    instance,
    rows,
    shape_text,
    symbols_of,
)
from frtspec.dims.solve import Solution, solve

__all__ = [
    "Axis",
    "Constraint",
    "DimError",
    "Measured",
    "Poly",
    "PolyLike",
    "Shape",
    "Solution",
    "any_axis",
    "at_least",
    "at_most",
    "axis",
    "between",
    "dims",
    "divides",
    "either",
    "equal",
    "instance",
    "measured",
    "one_of",
    "rows",
    "shape_text",
    "solve",
    "symbols_of",
]
