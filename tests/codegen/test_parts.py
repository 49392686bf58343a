"""Parts: what stays the host's inside a structure is handed to the reference."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest
import torch
from codegen_kit import catalog, importable, program_of, structure_module, written
from torch import Tensor

from frtspec.diag.source import SourceFile
from frtspec.runtime.gating.synthetic import mixed
from frtspec.sema import analyse
from frtspec.syntax.parse import parse

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


def test_an_impl_calls_the_parts_it_is_handed(tmp_path: Path) -> None:
    """In the host's dtype, a part of several results once, one that is not there not at all."""
    written(program_of(BRANCH, IMPL), tmp_path, package="with_parts")
    with importable(tmp_path, "with_parts"):
        made = importlib.import_module("with_parts.impls.gated_branch_plain").GatedBranchPlain
    assert made.SPEC.parts == ("norm", "branch")
    seen: list[torch.dtype] = []

    def norm(value: Tensor) -> tuple[Tensor, Tensor]:
        seen.append(value.dtype)
        return value + 1, torch.full_like(value, 0.5)

    def branch(value: Tensor) -> Tensor:
        seen.append(value.dtype)
        return 2 * value

    (rung,) = made.SPEC.rungs
    x = torch.randn(3, 4).bfloat16()
    y = made(gating="given").on(rung).run(x, norm=norm, branch=branch)
    assert seen == [torch.bfloat16] * 2
    wanted = x.float() + 2 * (x + 1).float() * 0.5
    assert torch.equal(y, wanted.bfloat16())
    plain = made(gating="none").on(rung).run(x, branch=branch)
    assert torch.equal(plain, (x.float() + 2 * x.float()).bfloat16())
    with pytest.raises(ValueError, match="norm is needed where gating is given"):
        made(gating="given").on(rung).run(x, branch=branch)


def test_a_kernel_calls_no_part() -> None:
    kernel = """rung hub "org/name" version 1 { call run (bf16(x)) }
  rung emulate"""
    sources = [
        SourceFile.from_text(f"{number}.frt", text)
        for number, text in enumerate((BRANCH, IMPL.replace("rung emulate", kernel)))
    ]
    found = analyse([(source, parse(source).file) for source in sources]).diagnostics
    assert [d.code for d in found] == ["FRT0421"]
    assert "`norm`" in found[0].message and "`branch`" in found[0].message


def test_a_kernel_for_variants_without_the_part_is_taken() -> None:
    """The other part is there in every variant, and only that one is told."""
    kernel = """only gating (none)
  rung hub "org/name" version 1 { call run (bf16(x)) }
  rung emulate"""
    sources = [
        SourceFile.from_text(f"{number}.frt", text)
        for number, text in enumerate((BRANCH, IMPL.replace("rung emulate", kernel)))
    ]
    (found,) = analyse([(source, parse(source).file) for source in sources]).diagnostics
    assert found.code == "FRT0421"
    assert "`branch`" in found.message and "`norm`" not in found.message


def test_what_stands_in_for_a_part_tells_every_argument() -> None:
    """A synthetic part depends on all that it is handed, or the harness would miss a wrong one."""
    q, k, v = (torch.randn(2, 3, width) for width in (4, 5, 6))
    first = mixed((q, k, v), 0)
    assert first.shape == q.shape
    for place in range(3):
        other = [t + 1 if place == at else t for at, t in enumerate((q, k, v))]
        assert not torch.allclose(mixed(other, 0), first)


def test_the_catalog_has_some(tmp_path) -> None:  # type: ignore[no-untyped-def]
    written(catalog(), tmp_path, only={"structures/modnorm_qkv_chain/v3.frt"})
    made = (tmp_path / "flashrt_gen/structures/modnorm_qkv_chain_v3.py").read_text("utf-8")
    assert "self_attention: ops.Part | None = None" in made
