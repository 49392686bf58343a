"""Costs at given sizes, counted by hand."""

from __future__ import annotations

import pytest

from frtspec.dims import DimError
from frtspec.ir.decl import Program
from frtspec.sema.combos import combos
from frtspec.sema.cost import cost
from tests.sema.helpers import analysed
from tests.sema.test_specs import CATALOG
from tests.sema.test_specs import analysed as from_files

SCAN = """frt 1

structure decay version 1 {
  dim B, S, D
  in  x     [B, S, D] : f32
  in  start [B, D] : f32
  out y     [B, S, D] : f32
  reference {
    scan t in S over x[:, t] carry s = start {
      next s = s * 0.5 + x
      emit out = s + x
    }
    yield y = out
  }
}
"""


@pytest.fixture(scope="module")
def catalog() -> Program:
    return from_files(CATALOG)[0]


def test_a_projection(catalog: Program) -> None:
    structure = catalog.structures["linear_proj", 1]
    plain = next(c for c in combos(structure) if dict(c.variants)["epilogue"] == "none")
    found = cost(structure, plain).at({"M": 3, "K": 5, "N": 7})
    assert found.flops == 2 * 3 * 5 * 7
    assert found.weights == 2 * 5 * 7
    assert found.least == 2 * (3 * 5 + 5 * 7 + 3 * 7)
    assert found.unfused > found.least
    assert found.seconds(1e12, 1e9) == pytest.approx(found.least / 1e9)


def test_a_seam_costs_what_lies_inside(catalog: Program) -> None:
    structure = catalog.structures["decoder_ffn", 1]
    combo, sizes = combos(structure)[0], {"M": 2, "D": 8, "F": 16}
    inside = cost(structure, combo, seam=structure.seam("mlp")).at(sizes)
    whole = cost(structure, combo).at(sizes)
    assert inside.flops == 3 * 2 * 2 * 8 * 16 + 9 * 2 * 16
    assert inside.weights == 3 * 2 * 8 * 16
    assert inside.least == inside.weights + 2 * (2 * 8 + 2 * 8)
    assert whole.flops > inside.flops


def test_repeated_slots_are_summed(catalog: Program) -> None:
    structure = catalog.structures["qkv_pack", 1]
    sizes = {"M": 2, "K": 4, "N[0]": 3, "N[1]": 5, "N[2]": 5}
    found = cost(structure, combos(structure)[0]).at(sizes)
    assert found.flops == 2 * 2 * 4 * 13
    assert found.weights == 2 * 4 * 13


def test_a_scan_costs_its_steps() -> None:
    analysis, _ = analysed(SCAN)
    structure = analysis.program.structures["decay", 1]
    found = cost(structure, combos(structure)[0])
    assert str(found.flops) == "3*B*D*S"
    assert found.at({"B": 2, "S": 10, "D": 4}).flops == 3 * 2 * 10 * 4


def test_a_missing_size_is_named(catalog: Program) -> None:
    structure = catalog.structures["linear_proj", 1]
    with pytest.raises(DimError, match="N unknown"):
        cost(structure, combos(structure)[0]).at({"M": 3, "K": 5})


def test_wide_hosts_move_more(catalog: Program) -> None:
    structure = catalog.structures["linear_proj", 1]
    combo, sizes = combos(structure)[0], {"M": 3, "K": 5, "N": 7}
    half = cost(structure, combo, host_bits=16).at(sizes)
    full = cost(structure, combo, host_bits=32).at(sizes)
    assert full.least == 2 * half.least and full.flops == half.flops


def test_a_block_costs_what_its_structures_cost(catalog: Program) -> None:
    """Each norm once, although its output and its gate are read by two calls."""
    structure = catalog.structures["decoder_block", 1]
    gated = next(c for c in combos(structure) if dict(c.variants)["norm"] == "adaln_rms")
    sizes = {"B": 2, "S": 3, "D": 8, "C": 5, "ffn.F": 16}
    found = cost(structure, gated).at(sizes)

    ffn = catalog.structures["decoder_ffn", 1]
    mlp = cost(ffn, combos(ffn)[0], seam=ffn.seam("mlp")).at({"M": 6, "D": 8, "F": 16})
    norm = catalog.structures["adaln_producer", 1]
    alone = next(
        c
        for c in combos(norm)
        if {("norm", "rms"), ("style", "scale_shift_gate"), ("epilogue", "none")} <= set(c.variants)
    )
    each = cost(norm, alone).at({"M": 6, "D": 8, "C": 5})
    own = 4 * 2 * 3 * 8  # two gates, two residuals
    assert found.flops == mlp.flops + 2 * each.flops + own
    assert found.weights == mlp.weights + 2 * each.weights
    assert found.least == found.weights + 2 * (2 * 2 * 3 * 8 + 5)
