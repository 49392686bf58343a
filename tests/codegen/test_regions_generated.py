"""Generated code of repeated inputs, storage, wires and structures in slots."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest
import torch
from codegen_kit import SPECS, importable, program_of, structure_module, tree, written
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from frtspec.codegen import External, generate, manifest
from frtspec.diag.source import SourceFile
from frtspec.runtime import Refusal, Rule, StructureSpec, harness
from frtspec.sema import analyse
from frtspec.syntax.parse import parse

RELAY = """frt 1
structure relay version 1 {
  dim M, D
  in  x [rows M, D] : fp8_e4m3 scale x_s
  out y [rows M, D] : fp8_e4m3 scale y_s
  reference { yield y = quantize(f32(x) * x_s, fp8_e4m3, y_s) }
}
"""

JOINED = """frt 1
structure joined version 1 {
  dim M
  index i in 2..=4
  dim N[i]
  in  x[i] [rows M, N[i]] : host
  out y    [rows M, sum(N)] : host
  out z[i] [rows M, N[i]] : host
  reference {
    yield y = cat(each i => x[i], axis = -1)
    each i { yield z[i] = x[i] * 2 }
  }
}
"""

HELD = """frt 1
structure held version 1 {
  dim B, D
  in  x     [B, D] : host
  in  state [B, D] : f32
  out y     [B, D] : host  aliases x
  out after [B, D] : f32   updates state
  point state content
  point x observation
  reference {
    yield y = x
    yield after = state + f32(x)
  }
}
"""

BLOCK = """frt 1
structure mine version 1 {
  dim B, S, D
  in  x [B, S, D] : host
  out y [B, S, D] : host
  slot ffn : structure decoder_ffn.mlp version 1 with (activation is silu)
  reference { yield y = x + ffn(x) }
}
"""


# ---------------------------------------------------------------- wires


@pytest.fixture(scope="module")
def relay() -> ModuleType:
    return structure_module(RELAY)


@settings(deadline=None)
@given(
    st.lists(st.floats(-400, 400, width=32), min_size=1, max_size=40),
    st.sampled_from([0.25, 1.0, 3.0]),
)
def test_codes_and_their_scale_go_round(
    relay: ModuleType, values: list[float], scale: float
) -> None:
    """What goes in as codes under one scale comes out as the same codes."""
    codes = torch.tensor(values).to(torch.float8_e4m3fn)
    again = relay.reference(codes, x_s=scale, y_s=scale)
    assert again.dtype == torch.float8_e4m3fn and torch.equal(again.float(), codes.float())
    wide = relay.reference(codes, x_s=scale, y_s=2 * scale)
    exact = codes.float() / 2
    assert bool(((wide.float() - exact).abs() <= exact.abs() / 16 + 2**-10).all())


def test_a_wire_is_told_with_its_format_and_scale() -> None:
    spec: StructureSpec = structure_module(RELAY).SPEC
    assert {n: (w.format, w.scale) for n, w in spec.wires.items()} == {
        "x": ("fp8_e4m3", "x_s"),
        "y": ("fp8_e4m3", "y_s"),
    }
    case = harness.Case({}, (), {"M": 5, "D": 8})
    assert [r.verdict for r in harness.contract(spec, [case])] == ["pass"]


def test_int8_is_carried_too() -> None:
    relay = structure_module(RELAY.replace("fp8_e4m3", "int8"))
    codes = torch.arange(-127, 128, dtype=torch.int8)[None]
    assert torch.equal(relay.reference(codes, x_s=0.5, y_s=0.5), codes)


# ---------------------------------------------------------------- repetition and storage


def test_repeated_inputs_come_as_a_list() -> None:
    joined = structure_module(JOINED)
    x = [torch.randn(3, n) for n in (2, 5, 1)]
    y, z = joined.reference(x)
    assert torch.equal(y, torch.cat(x, -1))
    assert all(torch.equal(a, 2 * b) for a, b in zip(z, x, strict=True))
    with pytest.raises(ValueError, match="takes 2 to 4 of x, found 1"):
        joined.reference(x[:1])


def test_storage_and_points_outside_the_dataflow_are_in_the_spec() -> None:
    held = structure_module(HELD)
    seen: dict[str, Tensor] = {}
    x, state = torch.randn(2, 3), torch.zeros(2, 3)
    y, after = held.reference(x, state, record=seen.__setitem__)
    assert y is x and torch.equal(after, x) and not state.any()
    assert seen["state"] is state and seen["x"] is x
    assert held.SPEC.aliases == {"y": "x"} and held.SPEC.updates == {"after": "state"}
    assert held.SPEC.points == {"state": "content", "x": "observation"}


# ---------------------------------------------------------------- rules


def test_rules_read_as_the_spec_wrote_them() -> None:
    module = structure_module(
        """frt 1
structure ruled version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  variant side { left, right }
  point x content
  reference { yield y = match side { left => x, right => x * 2 } }
  require { D in (8, 16), drift(x) <= 1e-3 }
  qualify for step_table when not side is left { 2e6 <= M * D }
  require { dtype(x) is (f32, bf16) }
}
"""
    )
    rules: tuple[Rule, ...] = module.SPEC.rules
    assert [f"{rule.kind} {rule.text}" for rule in rules] == [
        "require D in (8, 16)",
        "require drift(x) <= 0.001",
        "qualify for step_table when not (side is left): D*M >= 2000000",
        "require dtype(x) is (f32, bf16)",
    ]
    assert rules[2].when is not None
    assert [rules[2].when({"side": side}) for side in ("left", "right")] == [False, True]
    assert [rule.text for rule in module.SPEC.requires] == ["D in (8, 16)"]


# ---------------------------------------------------------------- structures in slots


def ffn_text() -> str:
    return (SPECS / "structures" / "decoder_ffn" / "v1.frt").read_text("utf-8")


def test_a_block_of_ones_own_takes_the_catalogs_structure(tmp_path: Path) -> None:
    """It imports what the installed package holds, and asserts that it is the one meant."""
    program = program_of(ffn=ffn_text(), mine=BLOCK)
    base = tmp_path / "base"
    written(program_of(ffn=ffn_text()), base, package="base_gen")
    rows = manifest.read(base / "base_gen" / manifest.NAME)
    assert rows is not None
    written(program, tmp_path, package="own", external=External("base_gen", rows))
    files = tree(tmp_path / "own")
    assert "structures/decoder_ffn_v1.py" not in files
    text = files["structures/mine_v1.py"].decode()
    assert "from base_gen.structures import decoder_ffn_v1" in text
    assert re.search(r"require_digest\(\s*decoder_ffn_v1\.SPEC", text)
    with importable(base, "base_gen"), importable(tmp_path, "own"):
        module = importlib.import_module("own.structures.mine_v1")
        x = torch.randn(2, 3, 4)
        group = {
            "w_gate": torch.randn(4, 6),
            "w_up": torch.randn(4, 6),
            "w_down": torch.zeros(6, 4),
        }
        assert torch.equal(module.reference(x, ffn=group), x)
    changed = files["structures/mine_v1.py"].replace(
        program.structures["decoder_ffn", 1].origin.contract_digest.encode(), b"0" * 64
    )
    (tmp_path / "own" / "structures" / "mine_v1.py").write_bytes(changed)
    with importable(base, "base_gen"), importable(tmp_path, "own"), pytest.raises(Refusal):
        importlib.import_module("own.structures.mine_v1")


def test_a_seam_may_hold_a_structure(tmp_path: Path) -> None:
    text = BLOCK.replace(
        "reference { yield y = x + ffn(x) }",
        """reference {
    let h = x * 2
    let o = ffn(h)
    yield y = x + o
  }
  seam tail { from h to o  gate cosine >= 0.9 }""",
    )
    written(program_of(ffn=ffn_text(), mine=text), tmp_path, package="sewn")
    with importable(tmp_path, "sewn"):
        module = importlib.import_module("sewn.structures.mine_v1")
        gate = importlib.import_module("sewn.gates.mine_v1")
        x = torch.randn(2, 3, 4)
        group = {n: torch.randn(4, 6) for n in ("w_gate", "w_up")} | {"w_down": torch.randn(6, 4)}
        whole = module.reference(x, ffn=group)
        assert torch.equal(whole, x + module.tail(x * 2, ffn=group))
        assert torch.equal(x + 1, module.reference(x, ffn=group, tail_with=torch.ones_like))
        assert torch.equal(x + 1, module.reference(x, ffn=group, ffn_with=torch.ones_like))
        assert module.SPEC.seams["tail"].slots == ("ffn",)
        assert {r.verdict for r in gate.contract()} == {"pass"}


def test_what_is_asked_for_brings_its_structures(tmp_path: Path) -> None:
    program = program_of(ffn=ffn_text(), mine=BLOCK)
    written(program, tmp_path, package="own", only={"mine.frt"})
    names = {n for n in tree(tmp_path / "own") if n.startswith("structures/")}
    assert names == {
        "structures/__init__.py",
        "structures/decoder_ffn_v1.py",
        "structures/mine_v1.py",
    }


def test_an_impl_of_a_whole_block_is_handed_its_structures(tmp_path: Path) -> None:
    text = (
        BLOCK
        + "impl whole for mine version 1 {\n  numerics { acc f32, out bf16 }\n  rung emulate\n}\n"
    )
    files = {"ffn.frt": ffn_text(), "mine.frt": text}
    parsed = []
    for name, content in files.items():
        source = SourceFile.from_text(name, content)
        parsed.append((source, parse(source).file))
    analysis = analyse(parsed)
    assert analysis.diagnostics == ()
    report = generate(analysis.program, tmp_path, package="own")
    assert report.diagnostics == ()
    made = (tmp_path / "own" / "impls" / "mine_whole.py").read_text("utf-8")
    assert "ffn: " in made.partition("def run_emulate(")[2].partition("->")[0]
