"""`discover` blocks as generated: plain data that a matcher reads."""

from __future__ import annotations

import pytest
from codegen_kit import structure_module

from frtspec.diag.catalog.sema_discover import _WHOLE
from frtspec.runtime import Held, Pattern, Role, RoleAt, Routed

CHOICE = """frt 1

structure proj version 1 {
  dim M, K, N
  in  x [rows M, K] : host
  out y [rows M, N] : host
  slot w  [K, N]
  slot b? [N]  when not bias is none
  variant bias { none, add, scaled }
  variant side { left, right }
  combinations { all except (bias is none and side is right) }
  reference {
    let a = match side { left => x @ w, right => (0 - x) @ w }
    let a = a + b      when bias is add and present b
    let a = a + b * 2  when bias is scaled and present b
    yield y = a
  }
  discover {
    role proj : linear (w, b) at seat
    boundary at seat { x = input, y = output }
  }
}
"""

TURNED = """frt 1

structure turned version 1 {
  dim B, T, H, D
  in  q [B, T, H, D] : host
  out y [B, T, H, D] : host
  reference { yield y = q * 2 }
  discover {
    form route (rope)
    dims (H, D)
    boundary at seat { q = arg q of rope : heads_first, y = output[0] of rope }
  }
}
"""


def test_a_pattern_is_what_the_spec_says() -> None:
    (found,) = structure_module(_WHOLE).SPEC.discover
    up, down, act, norm = found.roles
    assert up == Role("up", "linear", holds=(Held(("w_up",)), Held(("b_up",))))
    assert act == Role(
        "act", "activation", tells={"activation": {"gelu_tanh": "gelu", "silu": "silu"}}
    )
    assert (norm.where, norm.gives, norm.holds) == ("around", "eps", (Held(("w_norm",)),))
    assert found == Pattern(
        seam="mlp",
        roles=(up, down, act, norm),
        points={"normed": RoleAt("input"), "act": RoleAt("input", "down")},
        around=True,
        ports={"x": RoleAt("input", "norm"), "y": RoleAt("output")},
    )


def test_conditions_are_functions_of_the_variants() -> None:
    (found,) = structure_module(CHOICE).SPEC.discover
    weight, bias = found.roles[0].holds
    assert weight.exists({"bias": "none", "side": "left"})
    assert bias.optional
    there = [b for b in ("none", "add", "scaled") if bias.exists({"bias": b, "side": "left"})]
    assert there == ["add", "scaled"]
    assert found.excluded is not None
    assert found.excluded({"bias": "none", "side": "right"})
    assert not found.excluded({"bias": "add", "side": "right"})


def test_a_route_is_the_function_itself() -> None:
    (found,) = structure_module(TURNED).SPEC.discover
    assert found.route == Routed(
        "rope",
        via="global",
        function="apply_rotary_pos_emb",
        args={"q": "q", "k": "k", "cos": "cos", "sin": "sin"},
    )
    assert found.dims == ("H", "D")
    assert found.ports == {
        "q": RoleAt("arg", arg="q", layout="heads_first", routed=True),
        "y": RoleAt("output", item=0, routed=True),
    }


def test_a_structure_without_patterns_has_none() -> None:
    text = CHOICE[: CHOICE.index("  discover {")] + "}\n"
    module = structure_module(text)
    assert module.SPEC.discover == ()
    assert not hasattr(module, "DISCOVER")


@pytest.mark.parametrize("text", [CHOICE, TURNED, _WHOLE])
def test_nothing_but_the_patterns_depends_on_them(text: str) -> None:
    """The same contract, with and without."""
    start = text.index("  discover")
    bare = text[:start] + "}\n"
    one, other = structure_module(text), structure_module(bare)
    assert one.CONTRACT_DIGEST == other.CONTRACT_DIGEST
    assert one.SOURCE_DIGEST != other.SOURCE_DIGEST
