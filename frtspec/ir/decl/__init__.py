"""The typed IR of declarations: what every later phase reads.

All names are resolved and unique, defaults filled in, order as declared. Each
class keeps the span of its declaration.
"""

from frtspec.ir.decl.binding import (
    Binding,
    BoundaryRef,
    EachSeats,
    Expect,
    HostRef,
    PlaceRef,
    Seat,
    WeightView,
)
from frtspec.ir.decl.common import (
    Origin,
    Status,
)
from frtspec.ir.decl.impl import (
    Band,
    Impl,
    KernelArg,
    KernelCall,
    Numerics,
    Pack,
    Rung,
    Scale,
)
from frtspec.ir.decl.program import (
    Program,
)
from frtspec.ir.decl.scheme import (
    AutoTable,
    Route,
    Scheme,
    Stat,
)
from frtspec.ir.decl.structure import (
    Gate,
    IndexVar,
    MetricBound,
    Param,
    Part,
    Point,
    Port,
    Qualify,
    Seam,
    Slot,
    Structure,
    Variant,
)

__all__ = [
    "AutoTable",
    "Band",
    "Binding",
    "BoundaryRef",
    "EachSeats",
    "Expect",
    "Gate",
    "HostRef",
    "Impl",
    "IndexVar",
    "KernelArg",
    "KernelCall",
    "MetricBound",
    "Numerics",
    "Origin",
    "Pack",
    "Param",
    "Part",
    "PlaceRef",
    "Point",
    "Port",
    "Program",
    "Qualify",
    "Route",
    "Rung",
    "Scale",
    "Scheme",
    "Seam",
    "Seat",
    "Slot",
    "Stat",
    "Status",
    "Structure",
    "Variant",
    "WeightView",
]
