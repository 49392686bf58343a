"""The regions around attention and norms against the hand-written references of flash-rt 0.2.0.

In float32 the two agree to rounding, in bfloat16 bit for bit. Their weights are laid out
[out, in] here and there; ours are [in, out] everywhere, so a transposed view is handed in.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from flash_rt.catalog.structures.adaln_producer.reference import adaln_producer_ref
from flash_rt.catalog.structures.attention_core.reference import attention_core_ref
from flash_rt.catalog.structures.cadence_static.reference import cadence_static_ref
from flash_rt.catalog.structures.gated_delta_core.reference import gated_delta_core_ref
from flash_rt.catalog.structures.modnorm_qkv_chain.reference import modnorm_qkv_chain_ref
from flash_rt.catalog.structures.patch_projection.reference import patch_projection_ref
from flash_rt.catalog.structures.qk_norm_rope.reference import qk_norm_rope_ref
from flash_rt.catalog.structures.qkv_rope.reference import qkv_rope_ref
from flash_rt.catalog.structures.vision_ffn.reference import vision_ffn_ref
from flashrt_gen.structures import (
    adaln_producer_v1,
    attention_core_v1,
    cadence_static_v1,
    gated_delta_core_v1,
    modnorm_qkv_chain_v3,
    patch_projection_v1,
    qk_norm_rope_v1,
    qkv_rope_v1,
    vision_ffn_v2,
    vision_ffn_v3,
)
from hypothesis import given
from hypothesis import strategies as st
from reference_kit import BOTH, SLOW_BOX, few, leads, maker, same, seeds, sizes, tables

widths = st.sampled_from([2, 4, 6, 16, 32])


@BOTH
@pytest.mark.parametrize("affine", ["learned", "identity", "no_bias"])
@pytest.mark.parametrize("version", [2, 3])
@SLOW_BOX
@given(lead=leads, d=st.integers(2, 48), f=sizes, eps=st.sampled_from([1e-6, 1e-5]), seed=seeds)
def test_vision_ffn(
    dtype: torch.dtype,
    affine: str,
    version: int,
    lead: tuple[int, ...],
    d: int,
    f: int,
    eps: float,
    seed: int,
) -> None:
    make = maker(seed, dtype)
    x, w1, w2 = make(*lead, d), make(f, d) * d**-0.5, make(d, f) * f**-0.5
    b1, b2 = make(f), make(d)
    w_norm = None if affine == "identity" else make(d)
    b_norm = make(d) if affine == "learned" else None
    theirs = vision_ffn_ref(x, w_norm, b_norm, w1, b1, w2, b2, eps=eps)
    module: Any = {2: vision_ffn_v2, 3: vision_ffn_v3}[version]
    more = {} if version == 2 else {"activation": "gelu_tanh", "bias": "add"}
    ours = module.reference(
        x,
        w_norm=w_norm,
        b_norm=b_norm,
        w_fc1=w1.t(),
        b_fc1=b1,
        w_fc2=w2.t(),
        b_fc2=b2,
        norm_affine="identity" if affine == "identity" else "learned",
        eps=eps,
        **more,
    )
    same(ours, theirs)


@BOTH
@pytest.mark.parametrize("bias", ["none", "add"])
@SLOW_BOX
@given(lead=leads, k=sizes, n=sizes, seed=seeds)
def test_patch_projection(
    dtype: torch.dtype, bias: str, lead: tuple[int, ...], k: int, n: int, seed: int
) -> None:
    make = maker(seed, dtype)
    x, w = make(*lead, k), make(n, k) * k**-0.5
    b = make(n) if bias == "add" else None
    same(patch_projection_v1.reference(x, w=w.t(), b=b, bias=bias), patch_projection_ref(x, w, b))


@BOTH
@pytest.mark.parametrize("mode", ["direct", "offset"])
@pytest.mark.parametrize("layout", ["half", "interleaved"])
@pytest.mark.parametrize("scope", ["per_head", "projection"])
@SLOW_BOX
@given(
    b=few, t=few, hq=few, hkv=few, d=widths, part=st.integers(1, 16), seed=seeds, eps=st.just(1e-5)
)
def test_qk_norm_rope(
    dtype: torch.dtype,
    scope: str,
    layout: str,
    mode: str,
    b: int,
    t: int,
    hq: int,
    hkv: int,
    d: int,
    part: int,
    seed: int,
    eps: float,
) -> None:
    """Full and partial extents: R is what the tables are wide."""
    make = maker(seed, dtype)
    rotary = 2 * min(part, d // 2)
    q, k, v = make(b, t, hq, d), make(b, t, hkv, d), make(b, t, hkv, d)
    cos, sin = (table.to(dtype) for table in tables(t, rotary, batch=b))
    wide = scope == "projection"
    wq, wk = make(hq * d if wide else d), make(hkv * d if wide else d)
    theirs = qk_norm_rope_ref(
        q,
        k,
        v,
        wq,
        wk,
        cos,
        sin,
        eps=eps,
        rotary_dim=rotary,
        variant={
            "rope_layout": layout,
            "norm_weight_mode": mode,
            "normalization_scope": scope,
        },
    )
    names = (
        ("q_norm_wide", "k_norm_wide")
        if wide
        else (
            "q_norm_weight",
            "k_norm_weight",
        )
    )
    ours = qk_norm_rope_v1.reference(
        q,
        k,
        cos,
        sin,
        v,
        **dict(zip(names, (wq, wk), strict=True)),
        normalization_scope=scope,
        rope_layout=layout,
        norm_weight_mode=mode,
        eps=eps,
    )
    assert theirs[2] is v and ours[2] is v
    for mine, other in zip(ours, theirs, strict=True):
        same(mine, other)


@BOTH
@pytest.mark.parametrize("full", [False, True], ids=["half_tables", "full_tables"])
@SLOW_BOX
@given(b=few, t=few, hkv=few, group=few, d=widths, seed=seeds)
def test_qkv_rope(
    dtype: torch.dtype, full: bool, b: int, t: int, hkv: int, group: int, d: int, seed: int
) -> None:
    """Equal heads where the group is 1, grouped ones where it is larger."""
    make = maker(seed, dtype)
    hq = hkv * group
    packed, bias = make(b, t, (hq + 2 * hkv) * d), make((hq + 2 * hkv) * d)
    cos, sin = (torch.cat([x, x], -1) if full else x for x in tables(t, d, batch=b))
    cos, sin = cos.contiguous(), sin.contiguous()
    theirs = qkv_rope_ref(packed, bias, cos, sin, q_heads=hq, kv_heads=hkv, head_dim=d)
    ours = qkv_rope_v1.reference(packed, cos, sin, qkv_bias=bias, d=d, hq=hq, hkv=hkv)
    for mine, other in zip(ours, theirs, strict=True):
        same(mine, other)


@BOTH
@pytest.mark.parametrize("masked", [False, True], ids=["bare", "masked"])
@pytest.mark.parametrize("scaling", ["head_dim", "given"])
@SLOW_BOX
@given(b=few, hkv=few, group=few, queries=few, keys=st.integers(1, 9), d=sizes, seed=seeds)
def test_attention_core(
    dtype: torch.dtype,
    masked: bool,
    scaling: str,
    b: int,
    hkv: int,
    group: int,
    queries: int,
    keys: int,
    d: int,
    seed: int,
) -> None:
    make = maker(seed, dtype)
    q, k, v = make(b, hkv * group, queries, d), make(b, hkv, keys, d), make(b, hkv, keys, d)
    mask = make(b, 1, queries, keys) if masked else None
    theirs = attention_core_ref(q, k, v, mask, scale=0.3 if scaling == "given" else None)
    same(attention_core_v1.reference(q, k, v, mask, scaling=scaling, scale=0.3), theirs)


@BOTH
@pytest.mark.parametrize("norm", ["rms", "layer"])
@pytest.mark.parametrize("weighted", [False, True], ids=["bare", "weighted"])
@pytest.mark.parametrize("biased", [False, True], ids=["no_bias", "bias"])
@SLOW_BOX
@given(lead=leads, d=st.integers(2, 48), c=sizes, seed=seeds)
def test_adaln_producer(
    dtype: torch.dtype,
    norm: str,
    weighted: bool,
    biased: bool,
    lead: tuple[int, ...],
    d: int,
    c: int,
    seed: int,
) -> None:
    make = maker(seed, dtype)
    x, cond, style_w = make(*lead, d), make(1, c), make(c, 3 * d) * c**-0.5
    style_b = make(3 * d) if biased else None
    norm_w = make(d) if weighted else None
    theirs = adaln_producer_ref(x, cond, style_w, style_b, norm_w, variant={"norm": norm})
    y, gate, stream = adaln_producer_v1.reference(
        x,
        cond,
        style_w=style_w,
        style_b=style_b,
        norm_w=norm_w,
        norm=norm,
        style="scale_shift_gate",
        style_order="scale_first",
        cond_activation="none",
        epilogue="none",
    )
    assert stream is None and gate is not None
    if not lead:  # a single vector: their sum has the [1, D] of the style
        y = y.reshape(theirs[0].shape)
    same(y, theirs[0])
    same(gate, theirs[1])


@BOTH
@pytest.mark.parametrize("stated", [False, True], ids=["fresh", "given_state"])
@pytest.mark.parametrize("norm", ["in_core", "on_host"])
@SLOW_BOX
@given(b=few, s=few, h=few, d=sizes, seed=seeds)
def test_gated_delta_core(
    dtype: torch.dtype, stated: bool, norm: str, b: int, s: int, h: int, d: int, seed: int
) -> None:
    """Outputs are theirs; of the state ours is the float32 that they round on the way out."""
    make = maker(seed, dtype)
    q, k, v = (make(b, s, h, d) for _ in range(3))
    log_decay, beta = -make(b, s, h).abs(), make(b, s, h).sigmoid()
    state = make(b, h, d, d).float() if stated else None
    theirs = gated_delta_core_ref(q, k, v, log_decay, beta, state, qk_l2norm=norm == "in_core")
    y, final = gated_delta_core_v1.reference(q, k, v, log_decay, beta, state, qk_norm=norm)
    same(y, theirs[0])
    assert final.dtype == torch.float32
    same(final.to(dtype), theirs[1])


@BOTH
@pytest.mark.parametrize("biased", [False, True], ids=["no_bias", "bias"])
@pytest.mark.parametrize("fanout", ["qkv", "q_only"])
@SLOW_BOX
@given(b=few, m=few, d=st.integers(2, 32), c=sizes, n=st.tuples(sizes, sizes, sizes), seed=seeds)
def test_modnorm_qkv_chain(
    dtype: torch.dtype,
    fanout: str,
    biased: bool,
    b: int,
    m: int,
    d: int,
    c: int,
    n: tuple[int, int, int],
    seed: int,
) -> None:
    """The one form that they have a reference for."""
    make = maker(seed, dtype)
    x, cond = make(b, m, d), make(b, c)
    w_cond, b_cond = make(2 * d, c) * c**-0.5, make(2 * d)
    w = [make(wide, d) * d**-0.5 for wide in n]
    bias = [make(wide) if biased else None for wide in n]
    pairs = [item for pair in zip(w, bias, strict=True) for item in pair]
    if fanout == "q_only":
        pairs[2:] = [None] * 4
    theirs = modnorm_qkv_chain_ref(x, cond, w_cond, b_cond, *pairs, fanout=fanout)
    names = ("w_q", "b_q", "w_k", "b_k", "w_v", "b_v")
    turned = [p.t() if p is not None and p.dim() == 2 else p for p in pairs]
    q, k, v, y = modnorm_qkv_chain_v3.reference(
        x,
        cond,
        w_cond=w_cond.t(),
        b_cond=b_cond,
        **dict(zip(names, turned, strict=True)),
        modulation="scale_shift",
        fanout=fanout,
    )
    assert y is None
    ours = [value for value in (q, k, v) if value is not None]
    wanted = [theirs] if isinstance(theirs, torch.Tensor) else list(theirs)
    assert len(ours) == len(wanted)
    for mine, other in zip(ours, wanted, strict=True):
        same(mine, other)


@BOTH
@SLOW_BOX
@given(lead=leads, k=sizes, n=sizes, seed=seeds)
def test_cadence_static(
    dtype: torch.dtype, lead: tuple[int, ...], k: int, n: int, seed: int
) -> None:
    make = maker(seed, dtype)
    x, host = make(*lead, k), torch.nn.Linear(k, n).to(dtype)
    seen: dict[str, torch.Tensor] = {}
    ours = cadence_static_v1.reference(x, update=host, record=seen.__setitem__)
    same(ours, cadence_static_ref(x, host))
    assert seen["held"] is ours
