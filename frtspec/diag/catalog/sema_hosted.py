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

_BLOCK = """binding b {
  host transformers ">=5.0,<6" class LlamaForCausalLM
  dims { D = config.hidden_size, L = config.num_hidden_layers }
  each i in 0..L {
   seat block : branch version 1 at model.layers.{i} {
    form block
    dims { D = D }
    slot w = self_attn.o_proj.weight : out_in
    part step at mlp { x = output of mlp.up_proj, result = input of mlp.down_proj }
    boundary at model.layers.{i} { x = input, y = output }
   }
  }
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
    code(
        "0422",
        "impls",
        "part that is not found on the host",
        "A part of a seat with `form block` is some modules of the host, called in turn. Where it "
        "begins and ends inside the last one is said for every argument, and for the result.",
        swap(
            file(_BRANCH, _BLOCK),
            "{ x = output of mlp.up_proj, result = input of mlp.down_proj }",
            "{ x = output of mlp.up_proj }",
        ),
        "Write `result = input of …`, or leave the braces out where the modules are called whole.",
    ),
)
