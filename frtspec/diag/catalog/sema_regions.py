"""Codes of rules on facts, composition, storage and wires (FRT032x)."""

from __future__ import annotations

from frtspec.diag.catalog.sema_parts import SCHEME, STRUCTURE, body, code, file, swap
from frtspec.diag.codes_types import Code

_CONTENT = STRUCTURE.replace("    point x_in = x\n", "    point x_in content = x\n")

_BLOCK = """structure block version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  slot norm : structure scaled version 1 with (scaling is given)
  reference { yield y = norm(x).z }
}
structure scaled version 1 {
  dim M, D
  in  x [rows M, D] : host
  out z [rows M, D] : host
  out twice [rows M, D] : host  when scaling is given
  slot w [D]  when scaling is given
  variant scaling { none, given }
  reference {
    let h = x
    let h = h * w  when scaling is given
    yield z = h
    yield twice = h + h  when scaling is given
  }
}
"""

_STATE = """structure state version 1 {
  dim B, D
  in  held [B, D] : f32
  out after [B, D] : f32  updates held
  reference { yield after = f32(held) * 0.5 }
}
"""

_WIRE = """structure wired version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : fp8_e4m3 scale y_s
  reference { yield y = quantize(x, fp8_e4m3, y_s) }
}
"""

CODES: tuple[Code, ...] = (
    code(
        "0320",
        "types",
        "rule that asks a fact wrongly",
        "A rule may ask what is measured on a host, from a closed table. Each fact is about one "
        "kind of thing, and is a number or a word.",
        swap(
            body("point seen content = x\nyield y = seen", "require { steps(seen) <= 64 }"),
            "steps(seen) <= 64",
            "steps(x) <= 64",
        ),
        "Ask it about what it is about: the table of measured facts says which.",
    ),
    code(
        "0321",
        "types",
        "structure in a slot that leaves something open",
        "What is handed to an inner structure, and what is read of it, has to exist however that "
        "structure is set. `with (axis is value)` settles its variants.",
        swap(
            file(_BLOCK.replace(".z", ".twice")),
            " with (scaling is given)",
            "",
        ),
        "Settle the variant that decides it, or hand in and read what always exists.",
    ),
    code(
        "0322",
        "types",
        "structure made of itself",
        "A slot that is a structure holds a smaller one. This one would hold itself.",
        swap(
            file(
                """structure outer version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  part step : host fn (x) -> x
  reference { yield y = step(x) }
}
"""
            ),
            "part step : host fn (x) -> x",
            "slot step : structure outer version 1",
        ),
        "Leave the slot out, or make it a part, which stays the host's.",
    ),
    code(
        "0323",
        "types",
        "output that can't share its input's storage",
        "An output that updates an input has its shape and dtype. One that is an input's storage "
        "is yielded as that input, unchanged.",
        swap(file(_STATE), "in  held [B, D] : f32", "in  held [B, D] : bf16"),
        "Give both one shape and one dtype, or leave `updates` or `aliases` out.",
    ),
    code(
        "0324",
        "types",
        "wire without a scale",
        "Codes mean nothing without their scale: a quantised port names it, and only such a port "
        "has one.",
        (
            file(_WIRE.replace(" scale y_s", "\n  param y_s = 0.5")),
            file(_WIRE),
        ),
        "Write `: fp8_e4m3 scale NAME`, or give the port a dtype without a scale.",
    ),
    code(
        "0325",
        "types",
        "statistic of what has none",
        "Only a point that is a statistic reduces by percentile. The content of a point is kept as "
        "it is, and an observation is no value.",
        (
            file(
                _CONTENT,
                SCHEME.replace("use fp8", 'keep "nothing yet"'),
            ),
            file(
                _CONTENT,
                SCHEME.replace("{ x_in: amax per tensor } use fp8", 'keep "nothing yet"'),
            ),
        ),
        "Leave the point out, or declare it without `content` or `observation`.",
    ),
)
