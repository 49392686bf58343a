"""The contract digest moves with the meaning and with nothing else."""

from __future__ import annotations

import random
import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from frtspec.ir.canon import contract, contract_digest, dump, number_text
from frtspec.ir.decl import Structure
from tests.sema.helpers import analysed

FFN = """frt 1

structure ffn version 1 {
  dim M, D, F
  param eps = 1e-6
  in  x     [rows M, D] : host
  in  gain? [rows M, D] : host
  out y     [rows M, D] : host
  slot w_up   [D, F]
  slot w_down [F, D]
  variant act { gelu, silu }
  variant sign { plain, negated }
  require { D % 16 == 0, 64 <= F <= 4096 }
  reference {
    let h = rms_norm(x, eps)
    let h = h * gain  when present gain
    point hidden = match act { gelu => gelu_tanh(h @ w_up), silu => silu(h @ w_up) }
    let o = hidden @ w_down
    yield y = match sign { plain => o, negated => 0 - o }
  }
  seam down { from hidden to o  gate cosine >= 0.995 }
  gate boundary on real_distribution { cosine >= 0.999, max_abs }
  gate latency  per shape { net_positive, against (vendor, torch_compile) }
  qualify { D * F >= 1048576 }
}
"""


def structure(text: str) -> Structure:
    analysis, syntax = analysed(text)
    assert syntax == () and analysis.diagnostics == (), analysis.diagnostics
    (found,) = analysis.program.structures.values()
    return found


def digest(text: str) -> str:
    return structure(text).origin.contract_digest


SAME = {
    "comments": ("  dim M, D, F\n", "  # sizes\n  dim M, D, F  # of the block\n"),
    "a docstring": ("version 1 {\n", 'version 1 {\n  """A block."""\n'),
    "evidence": ("  qualify", '  evidence """It was fast."""\n  qualify'),
    "the status": ("  dim M, D, F\n", '  status imported "not verified"\n  dim M, D, F\n'),
    "layout": ("  slot w_down [F, D]\n", "  slot w_down\n    [F,D]\n"),
    "a number's spelling": ("1e-6", "0.000001"),
    "a bound's spelling": ("0.999", "9.99e-1"),
    "a polynomial's spelling": ("D * F >= 1048576", "F * D >= 1048576"),
    "the order of dims": ("dim M, D, F", "dim F, M, D"),
    "the order of slots": (
        "  slot w_up   [D, F]\n  slot w_down [F, D]\n",
        "  slot w_down [F, D]\n  slot w_up   [D, F]\n",
    ),
    "the order of values": ("variant act { gelu, silu }", "variant act { silu, gelu }"),
    "the order of arms": ("plain => o, negated => 0 - o", "negated => 0 - o, plain => o"),
    "the order of rules": ("D % 16 == 0, 64 <= F <= 4096", "64 <= F <= 4096, D % 16 == 0"),
    "the order of metrics": ("cosine >= 0.999, max_abs", "max_abs, cosine >= 0.999"),
    "the order of baselines": ("(vendor, torch_compile)", "(torch_compile, vendor)"),
}

OTHER = {
    "a bound": ("0.999", "0.998"),
    "a default": ("1e-6", "1e-5"),
    "an op": ("gelu_tanh", "gelu_erf"),
    "a point's place": ("point hidden = match", "let hidden = match"),
    "a shape": ("in  gain? [rows M, D]", "in  gain? [D]"),
    "an optional input": ("in  gain? ", "in  gain "),
    "a rule": ("D % 16 == 0", "D % 32 == 0"),
    "the order of inputs": (
        "  in  x     [rows M, D] : host\n  in  gain? [rows M, D] : host\n",
        "  in  gain? [rows M, D] : host\n  in  x     [rows M, D] : host\n",
    ),
    "a seam": ("seam down {", "seam lower {"),
    "the version": ("version 1", "version 2"),
}


@pytest.mark.parametrize("change", SAME)
def test_the_digest_stays(change: str) -> None:
    before, after = SAME[change]
    assert before in FFN
    assert digest(FFN.replace(before, after)) == digest(FFN)


@pytest.mark.parametrize("change", OTHER)
def test_the_digest_moves(change: str) -> None:
    before, after = OTHER[change]
    assert before in FFN
    text = FFN.replace(before, after)
    if change == "an optional input":
        text = text.replace("  when present gain", "")
    assert digest(text) != digest(FFN)


def test_the_file_moves_the_source_digest_only() -> None:
    plain, windows = structure(FFN).origin, structure(FFN.replace("\n", "\r\n")).origin
    assert plain.contract_digest == windows.contract_digest
    assert plain.source_digest != windows.source_digest


def test_the_revision_of_an_op_is_part_of_the_contract() -> None:
    data = contract(structure(FFN))
    assert data["ops"]["rms_norm"] == 1
    assert "layer_norm" not in data["ops"]


def test_the_digest_is_the_same_everywhere() -> None:
    assert digest(FFN) == contract_digest(structure(FFN))
    assert re.fullmatch(r"[0-9a-f]{64}", digest(FFN))


@given(st.decimals(allow_nan=False, allow_infinity=False), st.integers(0, 5))
def test_numbers_count_by_value(value: Decimal, zeros: int) -> None:
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    longer = Decimal((sign, (*digits, *[0] * zeros), exponent - zeros))
    assert number_text(longer) == number_text(value)
    assert Decimal(number_text(value)) == value


def test_canonical_json_is_ascii_and_sorted() -> None:
    keys = list("zyxäb")
    random.Random(0).shuffle(keys)
    assert dump(dict.fromkeys(keys, "é")) == dump(dict.fromkeys(sorted(keys), "é"))
    assert dump({"ä": 1}).isascii()


BLOCK = """frt 1
structure block version 1 {
  dim B, D
  in  x [B, D] : host
  out y [B, D] : host
  slot norm : structure scaled version 1 with (style is one)
  reference { yield y = norm(x) }
  require for step_table when side is left { D in (4, 8), dtype(x) is (f32, bf16) }
  variant side { left, right }
}
structure scaled version 1 {
  dim M, D
  in  x [rows M, D] : host
  out y [rows M, D] : host
  variant style { one, two }
  reference { yield y = match style { one => x * 1, two => x * 2 } }
}
"""


def test_a_block_changes_with_what_stands_in_its_slots() -> None:
    base = digest_of(BLOCK)
    assert digest_of(BLOCK.replace("two => x * 2", "two => x * 3")) != base
    assert digest_of(BLOCK.replace("with (style is one)", "with (style is two)")) != base
    assert digest_of(BLOCK.replace("with (style is one)", "")) != base


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("require for", "qualify for"),
        ("step_table", "fp8_wire"),
        ("side is left", "side is right"),
        ("(4, 8)", "(4, 8, 16)"),
        ("(f32, bf16)", "f32"),
        ("dtype(x)", "dtype(y)"),
    ],
)
def test_every_part_of_a_rule_is_contract(old: str, new: str) -> None:
    assert old in BLOCK and digest_of(BLOCK.replace(old, new)) != digest_of(BLOCK)


def digest_of(text: str) -> str:
    """The contract digest of the block."""
    analysis, _ = analysed(text)
    return analysis.program.structures["block", 1].origin.contract_digest
