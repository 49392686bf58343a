"""Generated references compute what their dataflow says, the hardest ones included."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from codegen_kit import hard_structure, module_of, program_of, structure_module, structure_source
from flashrt_gen.structures import vision_ffn_v2
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as nnf

from frtspec.codegen.structview import structure_view
from frtspec.codegen.unsupported import Unsupported
from frtspec.runtime import Refusal

SLOW_BOX = settings(deadline=None, max_examples=25)


def randn(*shape: int, seed: int = 0, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


# ---------------------------------------------------------------- the hard specs


@pytest.fixture(scope="module")
def gated_delta() -> ModuleType:
    return module_of(structure_source(hard_structure("gated_delta_core")), "generated_gated_delta")


def gated_delta_by_hand(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, beta: Tensor, state: Tensor, norm: bool
) -> tuple[Tensor, Tensor]:
    """The recurrence with explicit loops over batch, step and head."""

    def unit(x: Tensor) -> Tensor:
        return x / torch.sqrt((x * x).sum() + 1e-6) if norm else x

    s = state.clone()
    y = torch.zeros(*v.shape)
    for b in range(q.shape[0]):
        for t in range(q.shape[1]):
            for h in range(q.shape[2]):
                qi = unit(q[b, t, h].float()) * q.shape[-1] ** -0.5
                ki = unit(k[b, t, h].float())
                s[b, h] = s[b, h] * log_decay[b, t, h].float().exp()
                delta = (v[b, t, h].float() - s[b, h].T @ ki) * beta[b, t, h].float()
                s[b, h] = s[b, h] + torch.outer(ki, delta)
                y[b, t, h] = s[b, h].T @ qi
    return y.to(q.dtype), s


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("norm", ["in_core", "on_host"])
@pytest.mark.parametrize("given_state", [False, True])
def test_gated_delta_core(
    gated_delta: ModuleType, dtype: torch.dtype, norm: str, given_state: bool
) -> None:
    b, s, h, dk, dv = 2, 5, 3, 4, 6
    q, k = randn(b, s, h, dk, dtype=dtype), randn(b, s, h, dk, seed=1, dtype=dtype)
    v = randn(b, s, h, dv, seed=2, dtype=dtype)
    decay = -randn(b, s, h, seed=3, dtype=dtype).abs()
    beta = randn(b, s, h, seed=4, dtype=dtype).sigmoid()
    state = randn(b, h, dk, dv, seed=5) if given_state else None
    y, final = gated_delta.reference(q, k, v, decay, beta, state, qk_norm=norm)
    start = torch.zeros(b, h, dk, dv) if state is None else state
    by_hand = gated_delta_by_hand(q, k, v, decay, beta, start, norm == "in_core")
    assert y.dtype == dtype and final.dtype == torch.float32
    torch.testing.assert_close(
        y, by_hand[0], rtol=1e-2 if dtype == torch.bfloat16 else 1e-5, atol=1e-5
    )
    torch.testing.assert_close(final, by_hand[1], rtol=1e-5, atol=1e-5)


def test_one_step_after_another_is_the_whole(gated_delta: ModuleType) -> None:
    """Decoding continues from a state exactly where a prefill would have gone."""
    q, k, v = randn(1, 6, 2, 4), randn(1, 6, 2, 4, seed=1), randn(1, 6, 2, 4, seed=2)
    decay, beta = -randn(1, 6, 2, seed=3).abs(), randn(1, 6, 2, seed=4).sigmoid()
    whole, final = gated_delta.reference(q, k, v, decay, beta, qk_norm="in_core")
    state, steps = None, []
    for t in range(6):
        one = [x[:, t : t + 1] for x in (q, k, v, decay, beta)]
        y, state = gated_delta.reference(*one, state, qk_norm="in_core")
        steps.append(y)
    assert torch.equal(torch.cat(steps, dim=1), whole)
    assert state is not None and torch.equal(state, final)


def test_gated_delta_core_against_the_peer(gated_delta: ModuleType) -> None:
    peer = pytest.importorskip("flash_rt.catalog.structures.gated_delta_core.reference")
    q, k, v = randn(2, 7, 3, 8), randn(2, 7, 3, 8, seed=1), randn(2, 7, 3, 8, seed=2)
    decay, beta = -randn(2, 7, 3, seed=3).abs(), randn(2, 7, 3, seed=4).sigmoid()
    ours = gated_delta.reference(q, k, v, decay, beta, qk_norm="in_core")
    theirs = peer.gated_delta_core_ref(q, k, v, decay, beta)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-5, atol=1e-6)


@pytest.fixture(scope="module")
def adaln() -> ModuleType:
    return module_of(structure_source(hard_structure("adaln_producer")), "generated_adaln")


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("norm", "style"),
    [("rms", "scale_shift_gate"), ("layer", "scale_shift_gate"), ("layer", "scale_shift")],
)
def test_adaln_producer(
    adaln: ModuleType, norm: str, style: str, biased: bool, weighted: bool
) -> None:
    d, c = 6, 5
    parts = 3 if style == "scale_shift_gate" else 2
    x, cond = randn(2, 3, d), randn(1, c, seed=1)
    w, bias = randn(c, parts * d, seed=2), randn(parts * d, seed=3)
    weight = randn(d, seed=4) if weighted else None
    names = ("style_w", "style_b") if parts == 3 else ("pair_w", "pair_b")
    slots: dict[str, Any] = {names[0]: w, "norm_w": weight}
    if biased:
        slots[names[1]] = bias
    points: dict[str, Tensor] = {}
    y, gate = adaln.reference(x, cond, norm=norm, style=style, record=points.__setitem__, **slots)
    modulation = cond @ w + (bias if biased else 0)
    if norm == "rms":
        n = x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6)
    else:
        n = nnf.layer_norm(x, (d,), eps=1e-6)
    n = n if weight is None else n * weight
    expected = n * (1 + modulation[:, :d]) + modulation[:, d : 2 * d]
    torch.testing.assert_close(y, expected)
    assert torch.equal(points["step"], cond) and torch.equal(points["modulated"].to(y.dtype), y)
    if parts == 3:
        torch.testing.assert_close(gate, modulation[:, 2 * d :])
    else:
        assert gate is None


def test_a_combination_that_does_not_exist(adaln: ModuleType) -> None:
    with pytest.raises(ValueError, match="no form exists where norm is rms"):
        adaln.reference(randn(1, 6), randn(1, 5), norm="rms", style="scale_shift")


def test_a_structure_in_a_slot_of_another_takes_its_weights_as_a_group() -> None:
    chain = module_of(structure_source(hard_structure("modnorm_qkv_chain")), "hard_chain")
    inner = {"w_norm": None, "w_fc1": randn(6, 8), "b_fc1": randn(8, seed=1)}
    inner |= {"w_fc2": randn(8, 6, seed=2), "b_fc2": randn(6, seed=3), "norm_affine": "identity"}
    seen: dict[str, Tensor] = {}
    given = {
        "w_q": randn(6, 6, seed=4),
        "w_k": randn(6, 6, seed=5),
        "w_v": randn(6, 6, seed=6),
        "steps": randn(6, 6, seed=7),
        "modulation": "per_token_table",
        "fanout": "qkv",
        "attention": lambda q, k, v: q,
    }
    x, table = randn(2, 3, 6), randn(2, 3, 6, 6)
    whole = chain.reference(x, table=table, ffn=inner, record=seen.__setitem__, **given)[-1]
    own = vision_ffn_v2.reference(seen["ffn_in"], **inner)
    assert torch.equal(seen["ffn_hid"], own) and "ffn.hidden_after_act" in seen
    same = chain.reference(x, table=table, ffn=inner, ffn_with=lambda h: own, **given)[-1]
    assert torch.equal(whole, same)


# ---------------------------------------------------------------- what is given, what is not


@pytest.fixture(scope="module")
def gated() -> ModuleType:
    from codegen_kit import ROOT

    text = (ROOT / "tests" / "codegen" / "golden" / "variants" / "spec.frt").read_text()
    return structure_module(text)


def call_gated(gated: ModuleType, **options: Any) -> tuple[Tensor, Tensor | None]:
    base = {"act": "gelu", "gain": "fixed", "split": "no", "scale": 0.5}
    return gated.reference(randn(3, 4), w=randn(4, 8, seed=1), **{**base, **options})


def test_an_output_of_one_variant_is_none_elsewhere(gated: ModuleType) -> None:
    assert call_gated(gated)[1] is None
    y, rest = call_gated(gated, split="yes")
    assert rest is not None
    torch.testing.assert_close(rest, y - randn(3, 4))
    y, rest = call_gated(gated, split="yes", act="silu")
    assert rest is not None
    torch.testing.assert_close(rest, y + randn(3, 4))


def test_an_optional_input_changes_what_asks_for_it(gated: ModuleType) -> None:
    bias = randn(4, seed=9)
    plain, _ = call_gated(gated)
    torch.testing.assert_close(call_gated(gated, bias=bias)[0], plain + bias)
    assert torch.equal(
        call_gated(gated, bias=bias, split="yes")[0], call_gated(gated, split="yes")[0]
    )


def test_a_weight_that_a_variant_needs_has_to_be_there(gated: ModuleType) -> None:
    with pytest.raises(ValueError, match="g is needed where gain is learned"):
        call_gated(gated, gain="learned")


def test_a_weight_of_another_variant_is_refused(gated: ModuleType) -> None:
    with pytest.raises(Refusal, match="g given, which exists only where gain is learned"):
        call_gated(gated, g=randn(4))


def test_an_unknown_value_of_an_axis_is_refused(gated: ModuleType) -> None:
    with pytest.raises(Refusal, match="gated has no variant act = tanh; known: gelu, silu, relu"):
        call_gated(gated, act="tanh")


def test_an_axis_with_a_default_can_be_left_out(gated: ModuleType) -> None:
    x, w = randn(3, 4), randn(4, 8, seed=1)
    ours, _ = gated.reference(x, w=w, gain="fixed", split="no", scale=1.0)
    both = (x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5)) @ w
    torch.testing.assert_close(ours, nnf.silu(both[:, :4]) * both[:, 4:])


def test_repeated_slots_are_counted() -> None:
    from flashrt_gen.structures import qkv_pack_v1

    with pytest.raises(ValueError, match="qkv_pack takes 2 to 8 of w, found 1"):
        qkv_pack_v1.reference(randn(2, 4), w=[randn(4, 4)], bias="none")


# ---------------------------------------------------------------- seams

SEAMS = """frt 1

structure nest version 1 {
  dim M, D
  in  x [rows M, D] : f32
  out y [rows M, D] : f32
  slot a [D, D]
  slot b [D, D]
  reference {
    point start = x
    let p = start @ f32(a)
    point middle = relu(p)
    let q = middle @ f32(b)
    let r = q * 2
    yield y = start + r
  }
  seam outer { from start to r }
  seam inner { from middle to q }
}
"""


def test_a_seam_inside_a_seam_can_be_replaced() -> None:
    nest = structure_module(SEAMS)
    x, slots = randn(3, 4), {"a": randn(4, 4, seed=1), "b": randn(4, 4, seed=2)}
    seen: dict[str, Tensor] = {}
    y = nest.reference(x, **slots, record=seen.__setitem__)
    expected = x + 2 * (torch.relu(x @ slots["a"]) @ slots["b"])
    torch.testing.assert_close(y, expected)
    assert set(seen) == {"start", "middle"}
    torch.testing.assert_close(nest.reference(x, **slots, outer_with=lambda s: -s), x * 0)
    torch.testing.assert_close(
        nest.reference(x, **slots, inner_with=lambda m: m), x + 2 * torch.relu(x @ slots["a"])
    )
    torch.testing.assert_close(nest.outer(x, **slots), expected - x)


def test_seams_that_cross_have_no_generator() -> None:
    crossing = SEAMS.replace(
        "seam outer { from start to r }", "seam outer { from start to q }"
    ).replace("seam inner { from middle to q }", "seam inner { from middle to r }")
    (structure,) = program_of(crossing).structures.values()
    with pytest.raises(Unsupported, match="seams that cross"):
        structure_view(structure)


def test_a_seam_called_as_a_value() -> None:
    """The function gets another name; the hook keeps the seam's."""
    named = SEAMS.replace("seam outer", "seam r").replace("seam inner", "seam reference")
    nest = structure_module(named)
    assert nest.SPEC.seams["r"].call.__name__ == "r_seam"
    x, slots = randn(3, 4), {"a": randn(4, 4, seed=1), "b": randn(4, 4, seed=2)}
    torch.testing.assert_close(nest.reference(x, **slots, r_with=lambda s: -s), x * 0)


# ---------------------------------------------------------------- ops, one by one

OPS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "gelu_erf(a)": lambda a, b: nnf.gelu(a),
    "gelu_tanh(a)": lambda a, b: nnf.gelu(a, approximate="tanh"),
    "silu(a) * sigmoid(b)": lambda a, b: nnf.silu(a) * torch.sigmoid(b),
    "softmax(a)": lambda a, b: torch.softmax(a, -1),
    "softmax(a, over S)": lambda a, b: torch.softmax(a, 1),
    "a - (b - a)": lambda a, b: a - (b - a),
    "-a ** 2": lambda a, b: -(a**2),
    "a / 2 - b * 3": lambda a, b: a / 2 - b * 3,
    "maximum(a, b) + minimum(a, b)": lambda a, b: torch.maximum(a, b) + torch.minimum(a, b),
    "exp(-abs(a)) + tanh(b)": lambda a, b: torch.exp(-a.abs()) + torch.tanh(b),
    "softplus(a) + relu(b)": lambda a, b: nnf.softplus(a) + torch.relu(b),
    "layer_norm(a, 1e-5)": lambda a, b: nnf.layer_norm(a, a.shape[-1:], eps=1e-5),
    "l2norm(a, 1e-6)": lambda a, b: a * torch.rsqrt(a.pow(2).sum(-1, keepdim=True) + 1e-6),
    "cat(a[..., 0:D/2], b[..., D/2:D], axis = -1)": lambda a, b: torch.cat(
        [a.chunk(2, -1)[0], b.chunk(2, -1)[1]], -1
    ),
    "transpose(transpose(a, 1, 2), 1, 2)": lambda a, b: a,
    "flatten(unflatten(a, (2, D / 2)), 2)": lambda a, b: a,
    "a * D ** -0.5": lambda a, b: a * a.shape[-1] ** -0.5,
    "unsqueeze(sum(b, over D), -1) * a": lambda a, b: b.sum(-1, keepdim=True) * a,
    "unsqueeze(mean(b, over S), 1) + a": lambda a, b: b.mean(1, keepdim=True) + a,
    "a[:, 0:1] + b": lambda a, b: a[:, 0:1] + b,
    "split(cat(a, b, axis = -1), (D, D))[1]": lambda a, b: b,
    "repeat(a, 2, over S)[:, 0:S] ": lambda a, b: a.repeat_interleave(2, 1)[:, : a.shape[1]],
    "cat(chunk(a, 2)[1], chunk(b, 2)[0], axis = -1)": lambda a, b: torch.cat(
        [a.chunk(2, -1)[1], b.chunk(2, -1)[0]], -1
    ),
}


@pytest.mark.parametrize("text", OPS)
@SLOW_BOX
@given(seed=st.integers(0, 1000), s=st.integers(1, 5), half=st.integers(1, 4))
def test_an_op_computes_what_torch_does(text: str, seed: int, s: int, half: int) -> None:
    module = structure_module(f"""frt 1
structure one version 1 {{
  dim B, S, D
  in  a [B, S, D] : f32
  in  b [B, S, D] : f32
  out y [B, S, D] : f32
  reference {{
    let keep = b * 0
    yield y = {text} + keep
  }}
}}
""")
    a, b = randn(2, s, 2 * half, seed=seed), randn(2, s, 2 * half, seed=seed + 1)
    torch.testing.assert_close(module.reference(a, b), OPS[text](a, b))


def rotate(x: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return torch.cat([-second, first], -1)


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("kind", ["half", "interleaved"])
def test_rotary_embeddings(kind: str, wide: bool) -> None:
    """Tables without the heads' axis, as wide as the rotary extent or half of it."""
    width = "R" if wide else "R / 2"
    module = structure_module(f"""frt 1
structure rope version 1 {{
  dim B, S, H, D, R
  in  q   [B, S, H, D] : f32
  in  cos [B, S, {width}] : f32
  in  sin [B, S, {width}] : f32
  out y   [B, S, H, D] : f32
  reference {{ yield y = rope_{kind}(q, cos, sin, R) }}
  require {{ R % 2 == 0, R <= D }}
}}
""")
    b, s, h, d, r = 2, 3, 2, 10, 8
    q, angle = randn(b, s, h, d), randn(b, s, r // 2, seed=1)

    def spread(t: Tensor) -> Tensor:
        return torch.cat([t, t], -1) if kind == "half" else t.repeat_interleave(2, -1)

    cos, sin = spread(angle.cos()), spread(angle.sin())
    if kind == "half":
        turned = rotate(q[..., :r])
    else:
        turned = torch.stack([-q[..., 1:r:2], q[..., 0:r:2]], -1).flatten(-2)
    expected = torch.cat([q[..., :r] * cos[:, :, None] + turned * sin[:, :, None], q[..., r:]], -1)
    tables = (cos, sin) if wide else (angle.cos(), angle.sin())
    torch.testing.assert_close(module.reference(q, *tables), expected)


def test_attention_from_its_parts() -> None:
    module = structure_module("""frt 1
structure attend version 1 {
  dim B, H, S, T, D
  in  q [B, H, S, D] : f32
  in  k [B, H, T, D] : f32
  in  v [B, H, T, D] : f32
  out y [B, H, S, D] : f32
  reference {
    let scores = contract(q, k, over D) * D ** -0.5
    let weights = softmax(causal_mask(scores), over T)
    yield y = contract(weights, v, over T)
  }
}
""")
    q, k, v = randn(2, 3, 5, 8), randn(2, 3, 5, 8, seed=1), randn(2, 3, 5, 8, seed=2)
    expected = nnf.scaled_dot_product_attention(q, k, v, is_causal=True)
    torch.testing.assert_close(module.reference(q, k, v), expected)


def test_every_op_that_lowerings_call_is_there() -> None:
    from frtspec.ir.ops import RUNTIME_OPS
    from frtspec.runtime import ops

    assert [name for name in RUNTIME_OPS if not hasattr(ops, name)] == []


def test_routing() -> None:
    """The weights of the chosen experts, laid out over all of them."""
    module = structure_module("""frt 1
structure route version 1 {
  dim M, D, E, K
  in  x [rows M, D] : f32
  out y [rows M, E] : f32
  slot w [D, E]
  reference {
    let scores = softmax(x @ f32(w))
    let best = top_k(scores, 2, 0)
    let places = top_k(scores, 2, 1)
    yield y = spread(best, places, E)
  }
  require { E >= 2, K == 2 }
}
""")
    x, w = randn(5, 4), randn(4, 6, seed=1)
    scores = torch.softmax(x @ w, -1)
    kept = torch.where(scores >= scores.topk(2).values[:, 1:], scores, torch.zeros_like(scores))
    assert torch.equal(module.reference(x, w=w), kept)
