"""Parts: what stays the host's inside a structure is handed to the reference."""

from __future__ import annotations

import pytest
import torch
from codegen_kit import catalog, program_of, structure_module, written
from torch import Tensor

from frtspec.codegen import generate

BRANCH = """frt 1

structure gated_branch version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  variant gating { none, given }
  part norm   : host fn (x) -> (x, x)  when gating is given
  part branch : host fn (h) -> h
  reference {
    let h = norm(x)[0]  when gating is given otherwise x
    let o = branch(h)
    let o = o * norm(x)[1]  when gating is given
    yield y = x + o
  }
}
"""

IMPL = """frt 1

impl plain for gated_branch version 1 {
  numerics { acc f32, out bf16 }
  rung emulate
}
"""


def test_the_reference_calls_what_it_is_given() -> None:
    module = structure_module(BRANCH)
    assert module.SPEC.parts == {"norm": (0, 0), "branch": (0,)}
    x = torch.randn(3, 4)

    def norm(value: Tensor) -> tuple[Tensor, Tensor]:
        return value + 1, torch.full_like(value, 0.5)

    y = module.reference(x, norm=norm, branch=torch.exp, gating="given")
    assert torch.equal(y, x + torch.exp(x + 1) * 0.5)
    assert torch.equal(module.reference(x, branch=torch.exp, gating="none"), x + torch.exp(x))


def test_a_part_that_is_needed_is_asked_for() -> None:
    with pytest.raises(ValueError, match="norm is needed where gating is given"):
        structure_module(BRANCH).reference(torch.ones(1, 2), branch=torch.exp, gating="given")


def test_an_impl_of_the_whole_is_refused(tmp_path) -> None:  # type: ignore[no-untyped-def]
    report = generate(program_of(BRANCH, IMPL), tmp_path)
    assert ["holds the part `norm`" in d.message for d in report.diagnostics] == [True]


def test_the_catalog_has_some(tmp_path) -> None:  # type: ignore[no-untyped-def]
    written(catalog(), tmp_path, only={"structures/modnorm_qkv_chain/v3.frt"})
    made = (tmp_path / "flashrt_gen/structures/modnorm_qkv_chain_v3.py").read_text("utf-8")
    assert "self_attention: ops.Part | None = None" in made
