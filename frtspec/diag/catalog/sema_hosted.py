"""Codes of impls and seats of structures that call parts of the host (FRT0421 on)."""

from __future__ import annotations

from frtspec.diag.catalog.sema_parts import code, file, swap

_BRANCH = """structure branch version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  slot w [D, D]
  part step : host fn (x) -> x
  reference { yield y = x + step(x @ w) }
}
"""

_IMPL = """impl half for branch version 1 {
  numerics { acc f32, out bf16 }
  rung torch { lower matmul to bf16_mm }
  rung emulate
}
"""

CODES = (
    code(
        "0421",
        "impls",
        "kernel that would call the host",
        "An impl of a structure with parts is handed them at each call. Its arithmetic and a rung "
        "of library ops call them where the reference does; one kernel call can't.",
        swap(
            file(_BRANCH, _IMPL),
            "rung torch { lower matmul to bf16_mm }",
            'rung hub "example/branch" version 1 { call run (bf16(x)) }',
        ),
        "Use a rung torch, or a structure of what lies between the parts.",
    ),
)
