"""`discover` blocks: what is read, and what is said of each mistake."""

from __future__ import annotations

import pytest

from frtspec.diag.catalog.sema_discover import _WHOLE
from frtspec.ir.canon import contract_digest
from frtspec.ir.decl import Structure
from tests.sema.helpers import analysed, check

PACK = """frt 1

structure pack version 1 {
  dim M, K
  index i in 2..=4
  dim N[i]
  in  x    [rows M, K] : host
  out y[i] [rows M, N[i]] : host
  slot w[i] [K, N[i]]
  reference { each i { yield y[i] = x @ w[i] } }
  discover {
    role part[i] : linear (w)
    called part (q_proj, k_proj)
  }
}
"""

ROUTED = """frt 1

structure turned version 1 {
  dim B, T, H, D
  in  q   [B, T, H, D] : host
  in  cos [B, T, D] : host
  out y   [B, T, H, D] : host
  reference { yield y = q * unsqueeze(cos, 2) }
  discover {
    form route (rope)
    dims (H, D)
    called table (position_embeddings, rotary)
    boundary at seat {
      q = arg q of rope : heads_first,
      cos = arg table[0] : half,
      y = output[0] of rope : heads_first
    }
  }
}
"""


SLOW = """frt 1

structure held version 1 {
  dim M, N
  in  x [rows M, *] : host
  out y [rows M, N] : host
  part update : host fn (x) -> y
  reference { point kept content = update(x)  yield y = kept }
  discover {
    form update
    point kept = output
    boundary at seat { x = input, y = output }
  }
}
"""


def structure(text: str) -> Structure:
    analysis, syntax = analysed(text)
    assert syntax == () and analysis.diagnostics == (), analysis.diagnostics
    (found,) = analysis.program.structures.values()
    return found


def test_what_a_pattern_says() -> None:
    (found,) = structure(_WHOLE).discover
    assert found.seam == "mlp" and found.around
    up, down, act, norm = found.roles
    assert [held.slots for held in up.parameters] == [("w_up",), ("b_up",)]
    assert act.tells == (("activation", (("gelu_tanh", "gelu"), ("silu", "silu"))),)
    assert (norm.where, norm.gives) == ("around", "eps")
    assert norm.tells == (("norm_weight_mode", (("offset", "offset"), ("direct", "direct"))),)
    assert dict(found.points)["act"].role == down.name
    assert dict(found.ports)["x"].role == norm.name


def test_repeated_roles_and_their_names() -> None:
    (found,) = structure(PACK).discover
    (part,) = found.roles
    assert (part.index, part.called) == ("i", (("q_proj", "k_proj"),))


def test_places_at_a_function_that_the_host_looks_up() -> None:
    (found,) = structure(ROUTED).discover
    assert found.route is not None and found.route.function == "apply_rotary_pos_emb"
    assert (found.dims, found.called) == (
        ("H", "D"),
        (("table", ("position_embeddings", "rotary")),),
    )
    cos = dict(found.ports)["cos"]
    assert (cos.arg, cos.item, cos.layout, cos.routed) == ("table", 0, "half", False)
    y = dict(found.ports)["y"]
    assert (y.kind, y.item, y.layout, y.routed) == ("output", 0, "heads_first", True)


def test_a_pattern_of_what_changes_slowly() -> None:
    (found,) = structure(SLOW).discover
    assert found.update and found.roles == () and found.route is None
    (other,) = structure(PACK).discover
    assert not other.update


@pytest.mark.parametrize(
    ("new", "says"),
    [
        ("form update (cadence = prompt)", "how often an update runs is the caller's"),
        ("form update\n    role proj : linear", "what an update computes is the host's own"),
    ],
)
def test_a_mistake_in_a_pattern_of_what_changes_slowly(new: str, says: str) -> None:
    found = check(SLOW.replace("form update", new))
    assert any(d.code == "FRT0745" and says in d.message for d in found)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("activation tells activation", "activation  tells activation"),
        ("point normed = input\n", "point normed = input  # here\n"),
        (" gives eps", ""),
        ("silu => silu }", "silu => silu, quick_gelu => gelu }"),
    ],
)
def test_a_pattern_is_no_part_of_the_contract(old: str, new: str) -> None:
    assert old in _WHOLE
    digest = contract_digest(structure(_WHOLE))
    assert contract_digest(structure(_WHOLE.replace(old, new))) == digest


MISTAKES = [
    ("discover mlp {", "discover mpl {", "FRT0201", "unknown seam `mpl`"),
    (": linear (w_down)", ": lineal (w_down)", "FRT0207", "unknown kind of role `lineal`"),
    ("(w_up, b_up)", "(w_up, b_upp)", "FRT0201", "unknown slot `b_upp`"),
    ("(w_up, b_up)", "(w_up, b_up, w_norm)", "FRT0740", "names 3 slots"),
    ("(w_up, b_up)", "(b_up, w_up)", "FRT0740", "has 1 axes"),
    ("role down : linear (w_down)", "role down : linear (w_up)", "FRT0741", "held twice"),
    ("(w_norm) around seat", "(w_norm)", "FRT0741", "lies outside ffn.mlp"),
    ("(w_up, b_up)", "(w_up, b_up) around seat", "FRT0741", "lies inside ffn.mlp"),
    ("gelu_tanh => gelu", "gelu => gelu", "FRT0207", "unknown fact `gelu`"),
    ("gelu_tanh => gelu", "gelu_tanh => gelo", "FRT0742", "tells no value"),
    ("(w_down)\n", "(w_down) gives eps\n", "FRT0742", "has no number"),
    ("gives eps", "gives epz", "FRT0201", "unknown param `epz`"),
    ("input of down", "input of dawn", "FRT0201", "unknown role `dawn`"),
    ("point normed = input\n", "point norm = input\n", "FRT0201", "unknown point `norm`"),
    ("x = input of norm, y = output", "y = output", "FRT0743", "where `x` lies"),
    ("x = input of norm", "z = input of norm", "FRT0201", "unknown input or output `z`"),
    ("role down :", "role up :", "FRT0202", "given twice"),
    ("role down :", "role down[i] :", "FRT0201", "unknown index `i`"),
    (
        "role act  :",
        "called axt (a)\n    role act  :",
        "FRT0201",
        "unknown role `axt`",
    ),
    (
        "role act  :",
        "variant activation = gelo\n    role act  :",
        "FRT0201",
        "unknown value of variant activation `gelo`",
    ),
    ("role act  :", "form swap\n    role act  :", "FRT0745", "has no `form swap`"),
    ("role act  :", "form block\n    role act  :", "FRT0745", "has no `form block`"),
    ("role act  :", "dims (Q)\n    role act  :", "FRT0201", "unknown dim `Q`"),
]


@pytest.mark.parametrize(("old", "new", "code", "says"), MISTAKES)
def test_a_mistake_is_named(old: str, new: str, code: str, says: str) -> None:
    assert old in _WHOLE
    found = check(_WHOLE.replace(old, new, 1))
    assert any(d.code == code and says in d.message for d in found), [
        (d.code, d.message) for d in found
    ]


def test_a_whole_pattern_of_projections_needs_an_index() -> None:
    found = check(PACK.replace("role part[i] : linear (w)", "role part : linear (w)"))
    assert {d.code for d in found} >= {"FRT0741"}
