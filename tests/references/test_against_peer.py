"""Generated references against the hand-written ones of flash-rt 0.2.0.

Every variant they have, which round once, after the weight. In float32 the two agree
to rounding, in bfloat16 bit for bit.
"""

from __future__ import annotations

import pytest
import torch
from flash_rt.catalog.structures.decoder_ffn.reference import decoder_ffn_ref
from flash_rt.catalog.structures.linear_proj.reference import linear_proj_ref
from flash_rt.catalog.structures.norm_fused.reference import norm_fused_ref
from flash_rt.catalog.structures.qkv_pack.reference import qkv_pack_ref
from flashrt_gen.structures import (
    decoder_ffn_v1,
    linear_proj_v1,
    norm_fused_v1,
    norm_fused_v2,
    qkv_pack_v1,
)
from hypothesis import given
from hypothesis import strategies as st
from reference_kit import BOTH, SLOW_BOX, leads, maker, same, seeds, sizes


@BOTH
@pytest.mark.parametrize("conditioned", [False, True], ids=["none", "ada_ln"])
@pytest.mark.parametrize("mode", ["offset", "direct"])
@pytest.mark.parametrize("activation", ["gelu", "silu"])
@SLOW_BOX
@given(lead=leads, d=sizes, f=sizes, seed=seeds)
def test_decoder_ffn(
    dtype: torch.dtype,
    conditioned: bool,
    mode: str,
    activation: str,
    lead: tuple[int, ...],
    d: int,
    f: int,
    seed: int,
) -> None:
    make = maker(seed, dtype)
    x = make(*lead, d)
    slots = {
        "w_norm": make(d),
        "w_gate": make(d, f) * d**-0.5,
        "w_up": make(d, f) * d**-0.5,
        "w_down": make(f, d) * f**-0.5,
    }
    cond = {n: make(*lead, d) for n in ("cond_scale", "cond_shift", "cond_gate")}
    cond = cond if conditioned else {}
    theirs = decoder_ffn_ref(
        x, *slots.values(), activation=activation, norm_weight_mode=mode, **cond
    )
    ours = decoder_ffn_v1.reference(
        x,
        **slots,
        **cond,
        activation=activation,
        norm_weight_mode=mode,
        norm_rounding="after_weight",
        conditioning="ada_ln" if conditioned else "none",
    )
    same(ours, theirs)


@BOTH
@pytest.mark.parametrize("bias", ["none", "add"])
@pytest.mark.parametrize("epilogue", ["none", "gelu", "residual_add"])
@SLOW_BOX
@given(lead=leads, k=sizes, n=sizes, seed=seeds)
def test_linear_proj(
    dtype: torch.dtype,
    bias: str,
    epilogue: str,
    lead: tuple[int, ...],
    k: int,
    n: int,
    seed: int,
) -> None:
    make = maker(seed, dtype)
    x, w = make(*lead, k), make(k, n) * k**-0.5
    b = make(n) if bias == "add" else None
    residual = make(*lead, n) if epilogue == "residual_add" else None
    named = {"gelu": "gelu_quant_fp8"}.get(epilogue, epilogue)
    theirs = linear_proj_ref(x, w, b, residual, variant={"bias": bias, "epilogue": named})
    ours = linear_proj_v1.reference(x, residual, w=w, b=b, bias=bias, epilogue=epilogue)
    same(ours, theirs)


@BOTH
@pytest.mark.parametrize("bias", ["none", "add"])
@SLOW_BOX
@given(lead=leads, k=sizes, widths=st.lists(st.integers(1, 32), min_size=2, max_size=8), seed=seeds)
def test_qkv_pack(
    dtype: torch.dtype, bias: str, lead: tuple[int, ...], k: int, widths: list[int], seed: int
) -> None:
    make = maker(seed, dtype)
    x, w = make(*lead, k), [make(k, n) * k**-0.5 for n in widths]
    b = [make(n) for n in widths] if bias == "add" else None
    theirs = qkv_pack_ref(x, w, b)
    ours = qkv_pack_v1.reference(x, w=w, b=b, bias=bias)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        same(mine, other)


@BOTH
@pytest.mark.parametrize("eps", [1e-6, 1e-5, 1e-12])
@SLOW_BOX
@given(lead=leads, d=st.integers(2, 200), seed=seeds)
def test_norm_fused(
    dtype: torch.dtype, eps: float, lead: tuple[int, ...], d: int, seed: int
) -> None:
    make = maker(seed, dtype)
    x, w, b = make(*lead, d) * 3 + 1, make(d), make(d)
    theirs = norm_fused_ref(x, w, b, eps=eps)
    same(norm_fused_v1.reference(x, w=w, b=b, eps=eps), theirs)
    second = norm_fused_v2.reference(
        x,
        w=w,
        b=b,
        norm="layer",
        norm_weight_mode="direct",
        norm_rounding="after_weight",
        eps=eps,
    )
    same(second, theirs)


def test_defaults_are_theirs() -> None:
    make = maker(0, torch.float32)
    x, w, b = make(3, 16), make(16), make(16)
    same(norm_fused_v1.reference(x, w=w, b=b), norm_fused_ref(x, w, b))
