"""Types of values in a reference dataflow, and how they combine.

Dtypes and the rules for mixing them
    ``host`` is the dtype of the boundary, whatever the host runs in. It is a
    symbol: the reference must be right for every host dtype.

    - equal dtypes stay what they are, ``host`` with ``host`` included;
    - ``f32`` with ``host``, ``bf16`` or ``fp16`` gives ``f32``, as in torch;
    - a Python number (a constant, a param, a dim) never changes a tensor's dtype;
    - ``host`` with ``bf16`` or ``fp16``, and ``bf16`` with ``fp16``, is an error:
      the result would depend on the host, so a cast has to say what is meant;
    - quantised and whole-number dtypes take part in no arithmetic until cast.

    Products (``@``, ``linear``, ``contract``) take equal dtypes only, as torch does.
"""

from __future__ import annotations

from dataclasses import dataclass

from frtspec.dims import Axis, Poly, Shape, shape_text

DTYPES: dict[str, tuple[str, int]] = {
    "host": ("float", 0),
    "f32": ("float", 32),
    "bf16": ("float", 16),
    "fp16": ("float", 16),
    "int32": ("whole", 32),
    "int64": ("whole", 64),
    "bool": ("truth", 8),
    "fp8_e4m3": ("quantised", 8),
    "fp8_e5m2": ("quantised", 8),
    "int8": ("quantised", 8),
    "int4": ("quantised", 4),
    "nvfp4": ("quantised", 4),
}
"""Dtype name -> (class, bits per element); ``host`` has no width of its own."""

QUANTISED = tuple(name for name, (kind, _) in DTYPES.items() if kind == "quantised")
FLOATS = tuple(name for name, (kind, _) in DTYPES.items() if kind == "float")

ONE = Poly.const(1)


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of symbolic shape."""

    shape: Shape
    dtype: str

    def __str__(self) -> str:
        return f"{shape_text(self.shape)} {self.dtype}"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A Python number: a constant, a param, or a dim. Never changes a tensor's dtype."""

    def __str__(self) -> str:
        return "a number"


@dataclass(frozen=True, slots=True)
class Unknown:
    """The type of what was reported already; everything built on it is unknown too."""

    def __str__(self) -> str:
        return "unknown"


ValueType = Tensor | Scalar | Unknown

SCALAR = Scalar()
UNKNOWN = Unknown()


class OpError(Exception):
    """Operands that an op does not take. ``kind`` is shape, dtype, argument or absent."""

    def __init__(self, kind: str, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.help = help


def kind_of(dtype: str) -> str:
    return DTYPES[dtype][0]


def need_float(dtype: str) -> None:
    """Raise ``OpError`` for a dtype that takes part in no arithmetic."""
    if kind_of(dtype) != "float":
        help = "multiply the cast value by its scale" if dtype in QUANTISED else "f32(…)"
        raise OpError("dtype", f"{dtype} takes part in no arithmetic", f"cast it first: {help}")


def promote(left: str, right: str) -> str:
    """The dtype of an elementwise op on two tensors. Raises ``OpError``."""
    need_float(left)
    need_float(right)
    if left == right:
        return left
    if "f32" in (left, right):
        return "f32"
    why = ": the result would depend on the host" if "host" in (left, right) else ""
    raise OpError(
        "dtype",
        f"{left} and {right} do not mix{why}",
        "cast one of them: f32(…), bf16(…) or cast(…, x)",
    )


def broadcast(left: Shape, right: Shape) -> Shape:
    """The shape of an elementwise op; axes align from the right.

    A ``rows`` axis stands for any number of leading axes, so it meets the same rows,
    an axis of size 1, or nothing. Raises ``OpError``.
    """
    wide, narrow = (left, right) if len(left) >= len(right) else (right, left)
    lead = len(wide) - len(narrow)
    out = list(wide[:lead])
    for a, b in zip(wide[lead:], narrow, strict=True):
        joined = _join(a, b)
        if joined is None:
            raise OpError(
                "shape",
                f"{shape_text(left)} and {shape_text(right)} do not broadcast: {a} meets {b}",
            )
        out.append(joined)
    if lead and narrow and narrow[0].rows:
        raise OpError(
            "shape",
            f"{shape_text(left)} and {shape_text(right)} do not broadcast: rows can only "
            "meet the same rows",
        )
    return tuple(out)


def _join(a: Axis, b: Axis) -> Axis | None:
    if a == b:
        return a
    if a == ONE:
        return b
    if b == ONE:
        return a
    if isinstance(a, Poly) and not b.rows and a in b.alternatives:
        return a  # one of several sizes allowed: real shapes decide, and the solver checks
    if isinstance(b, Poly) and not a.rows and b in a.alternatives:
        return b
    return None


def size_of(axis: Axis) -> Poly:
    """The size of an axis as a polynomial: the last alternative, ``*`` for any size."""
    return axis.alternatives[-1] if axis.alternatives else Poly.symbol("*")


def numel(shape: Shape) -> Poly:
    """How many elements a shape has."""
    total = ONE
    for axis in shape:
        total = total * size_of(axis)
    return total
