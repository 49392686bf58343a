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
from frtspec.ir.decl.discover import (
    Discover,
    Role,
    RolePlace,
    RoleSlots,
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
    Inner,
    MetricBound,
    Param,
    Part,
    Point,
    Port,
    Rule,
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
    "Discover",
    "EachSeats",
    "Expect",
    "Gate",
    "HostRef",
    "Impl",
    "IndexVar",
    "Inner",
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
    "Role",
    "RolePlace",
    "RoleSlots",
    "Route",
    "Rule",
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
