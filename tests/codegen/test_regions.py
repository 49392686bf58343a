"""Regions that one library op stands for: what is taken for one, and what is not."""

from __future__ import annotations

import pytest
import torch
from codegen_kit import catalog, program_of
from flashrt_gen.impls.attention_core_v2_bf16 import AttentionCoreV2Bf16

from frtspec.codegen.implview import impl_view
from frtspec.codegen.render import render
from frtspec.ir import regions
from frtspec.ir.decl import Structure

HEAD = """frt 1
structure s version 1 {
  dim B, H, S, T, D
  param scale = 0.5
  in  q [B, H, S, D] : host
  in  k [B, H, T, D] : host
  in  v [B, H, T, D] : host
  in  mask? [B, H, S, T] : host
  out y [B, H, S, D] : host
  reference {
"""

ATTENTION = """    let s = f32(q) @ transpose(f32(k), 2, 3)
    let s = s * scale
    let s = s + f32(mask)  when present mask
    let o = softmax(s, over T) @ f32(v)
    yield y = cast(o, q)
"""


def structure(lines: str) -> Structure:
    (found,) = program_of(HEAD + lines + "  }\n}\n").structures.values()
    return found


def by_name(name: str, version: int) -> Structure:
    return next(s for s in catalog().structures.values() if (s.name, s.version) == (name, version))


def test_attention_is_found() -> None:
    found = regions.attention(structure(ATTENTION).reference)
    assert found is not None
    assert (found.bias, found.seen, found.causal) == ("mask", None, None)


@pytest.mark.parametrize(
    ("what", "right", "wrong"),
    [
        ("scaled behind the mask", "softmax(s,", "softmax(s * 2,"),
        ("another activation", "softmax(s, over T)", "sigmoid(s)"),
        ("softmax over the queries", "over T", "over S"),
        ("a mask of two parts", "f32(mask)", "f32(mask) * 2"),
        ("a mask that depends on the scores", "f32(mask)", "f32(mask) * s"),
        ("weights read elsewhere", "softmax(s, over T) @", "(softmax(s, over T) * 2) @"),
    ],
)
def test_what_differs_in_one_step_is_no_attention(what: str, right: str, wrong: str) -> None:
    assert right in ATTENTION
    assert regions.attention(structure(ATTENTION.replace(right, wrong)).reference) is None


@pytest.mark.parametrize("version", [1, 2])
def test_the_catalog_has_both(version: int) -> None:
    attention = regions.attention(by_name("attention_core", version).reference)
    assert attention is not None and attention.scale is not None
    assert attention.causal == (None if version == 1 else ("unmasked", ("causal",)))
    rule = regions.delta_rule(by_name("gated_delta_core", version).reference)
    assert rule is not None and rule.result == ("o", "s")


SCAN = """frt 1
structure s version 1 {
  dim B, S, H, K, V
  in q [B, S, H, K] : host
  in k [B, S, H, K] : host
  in v [B, S, H, V] : host
  in g [B, S, H] : host
  in b [B, S, H] : host
  in state? [B, H, K, V] : f32 = zeros
  out y [B, S, H, V] : host
  out last [B, H, K, V] : f32 updates state
  reference {
    let qf = f32(q)
    let kf = f32(k)
    let vf = f32(v)
    let d = exp(f32(g))
    let bf = f32(b)
    scan t in S over qf[:, t], kf[:, t], vf[:, t], d[:, t], bf[:, t] carry s = state {
      let kept = contract(s, d[:, t])
      let recalled = contract(kept, kf[:, t], over K)
      let delta = contract(vf[:, t] - recalled, bf[:, t])
      next s = kept + contract(kf[:, t], delta)
      emit o = contract(s, qf[:, t], over K)
    }
    yield y = cast(o, q)
    yield last = s
  }
}
"""


@pytest.mark.parametrize(
    ("what", "right", "wrong"),
    [
        ("nothing", "kept +", "kept +"),
        ("recalled from what was not decayed", "contract(kept, kf", "contract(s, kf"),
        ("written under the query", "contract(kf[:, t], delta)", "contract(qf[:, t], delta)"),
        ("kept state is not decayed", "next s = kept", "next s = s"),
        ("the difference the other way", "vf[:, t] - recalled", "recalled - vf[:, t]"),
        ("a decay that is no exponential", "exp(f32(g))", "sigmoid(f32(g))"),
    ],
)
def test_the_delta_rule_is_told_from_its_neighbours(what: str, right: str, wrong: str) -> None:
    assert right in SCAN
    (found,) = program_of(SCAN.replace(right, wrong)).structures.values()
    assert (regions.delta_rule(found.reference) is not None) == (right == wrong)


IMPL = """
impl form for s version 1 {
  numerics { acc f32, out bf16 }
  rung torch { lower softmax to sdpa }
  rung emulate
}
"""


def test_a_result_that_is_computed_with_is_read_as_float32() -> None:
    """What the fused op gives is bfloat16; a sum behind it is taken in float32."""
    text = HEAD + ATTENTION.replace("cast(o, q)", "cast(o + o, q)") + "  }\n}\n" + IMPL
    program = program_of(text)
    (whole,), (impl,) = program.structures.values(), program.impls.values()
    source = render("impl.py.j2", impl_view(whole, impl, "SForm"))
    assert "bias=mask).float()" in source


@pytest.mark.parametrize("unmasked", ["all", "causal"])
@pytest.mark.parametrize("scaling", ["head_dim", "given"])
def test_attention_of_the_catalog_on_its_torch_rung(unmasked: str, scaling: str) -> None:
    torch.manual_seed(0)
    impl = AttentionCoreV2Bf16(scaling=scaling, unmasked=unmasked, scale=0.3)
    q, k, v = torch.randn(2, 6, 3, 16), torch.randn(2, 2, 5, 16), torch.randn(2, 2, 5, 16)
    for seen in (None, torch.rand(2, 1, 3, 5) > 0.4):
        if seen is not None:
            seen[..., 0] = True
        ours, wanted = (run(q, k, v, seen) for run in (impl.run_torch, impl.run_emulate))
        assert ours.shape == wanted.shape and ours.dtype == wanted.dtype
        torch.testing.assert_close(ours, wanted, rtol=2e-2, atol=2e-2)
