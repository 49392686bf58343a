"""The regions against the modules they sit on: torch, transformers, diffusers.

Where the catalog of flash-rt has no reference, or one that no host computes, this is the
proof. In float32 they agree to rounding. Where a host rounds as the reference says, they
agree bit for bit in bfloat16.
"""

from __future__ import annotations

import pytest
import torch
from diffusers.models.attention import FeedForward
from diffusers.models.transformers.transformer_cosmos import CosmosAdaLayerNormZero
from diffusers.models.transformers.transformer_wan import WanTransformerBlock
from flashrt_gen.structures import (
    adaln_producer_v1,
    attention_core_v1,
    gated_delta_core_v1,
    modnorm_qkv_chain_v3,
    moe_experts_v1,
    patch_projection_v1,
    qk_norm_rope_v1,
    qkv_rope_v1,
    qkv_rope_v2,
    vision_ffn_v3,
)
from hypothesis import given
from hypothesis import strategies as st
from reference_kit import BOTH, SLOW_BOX, few, maker, same, seeds, sizes, tables
from torch import Tensor, nn
from torch.nn import functional as nnf
from transformers.models.gemma3 import modeling_gemma3
from transformers.models.qwen3 import modeling_qwen3
from transformers.models.qwen3_moe import modeling_qwen3_moe
from transformers.models.qwen3_moe.configuration_qwen3_moe import Qwen3MoeConfig
from transformers.models.qwen3_next import modeling_qwen3_next
from transformers.models.qwen3_vl import modeling_qwen3_vl
from transformers.models.qwen3_vl.configuration_qwen3_vl import Qwen3VLVisionConfig

widths = st.sampled_from([2, 4, 6, 16, 32])


def close(ours: Tensor, theirs: Tensor, tolerance: float = 2e-5) -> None:
    assert ours.dtype == theirs.dtype and ours.shape == theirs.shape
    torch.testing.assert_close(ours, theirs, rtol=tolerance, atol=tolerance)


# ---------------------------------------------------------------- feed-forward


@pytest.mark.parametrize("bias", ["add", "none"])
@pytest.mark.parametrize("gelu", ["gelu_tanh", "gelu_erf"])
@SLOW_BOX
@given(b=few, t=few, d=sizes, f=sizes, seed=seeds)
def test_tanh_and_erf_are_told_apart(
    gelu: str, bias: str, b: int, t: int, d: int, f: int, seed: int
) -> None:
    """diffusers' feed-forward: `gelu-approximate` is Wan's, `gelu` without biases Cosmos'."""
    torch.manual_seed(seed)
    named = {"gelu_tanh": "gelu-approximate", "gelu_erf": "gelu"}[gelu]
    ff = FeedForward(d, inner_dim=f, activation_fn=named, bias=bias == "add")
    up, down = ff.net[0].proj, ff.net[2]
    x = torch.randn(b, t, d)
    ours = vision_ffn_v3.reference(
        x,
        w_fc1=up.weight.t(),
        b_fc1=up.bias,
        w_fc2=down.weight.t(),
        b_fc2=down.bias,
        activation=gelu,
        norm_affine="identity",
        bias=bias,
    )
    close(ours, x + ff(nnf.layer_norm(x, (d,), eps=1e-6)))


def test_the_two_gelus_differ_where_it_shows() -> None:
    x = torch.linspace(-4, 4, 201)[:, None]
    one = torch.ones(1, 1)
    made = [
        vision_ffn_v3.mlp(x, w_fc1=one, w_fc2=one, activation=gelu, bias="none")
        for gelu in ("gelu_tanh", "gelu_erf")
    ]
    assert 1e-4 < float((made[0] - made[1]).abs().max()) < 1e-3


# ---------------------------------------------------------------- patches


@SLOW_BOX
@given(
    patches=few,
    channels=few,
    frames=few,
    side=few,
    width=sizes,
    seed=seeds,
)
def test_a_patch_is_a_convolution(
    patches: int, channels: int, frames: int, side: int, width: int, seed: int
) -> None:
    """Qwen3-VL's own patch embedding: kernel equals stride, weights [N, C, T, P, P]."""
    torch.manual_seed(seed)
    config = Qwen3VLVisionConfig(
        hidden_size=width, in_channels=channels, temporal_patch_size=frames, patch_size=side
    )
    host = modeling_qwen3_vl.Qwen3VLVisionPatchEmbed(config)
    x = torch.randn(patches, channels * frames * side * side)
    ours = patch_projection_v1.reference(
        x, w=host.proj.weight.flatten(1).t(), b=host.proj.bias, bias="add"
    )
    close(ours, host(x))


# ---------------------------------------------------------------- norms and rotary embedding


def heads_first(*values: Tensor) -> list[Tensor]:
    return [value.transpose(1, 2) for value in values]


@BOTH
@SLOW_BOX
@given(b=few, t=few, hq=few, hkv=few, d=widths, seed=seeds)
def test_qwen3_rounds_before_the_weight_and_turns_in_its_dtype(
    dtype: torch.dtype, b: int, t: int, hq: int, hkv: int, d: int, seed: int
) -> None:
    make = maker(seed, dtype)
    q, k, wq, wk = make(b, t, hq, d), make(b, t, hkv, d), make(d), make(d)
    cos, sin = (table.to(dtype) for table in tables(t, d, batch=b))
    norms = [modeling_qwen3.Qwen3RMSNorm(d, eps=1e-6).to(dtype) for _ in range(2)]
    for norm, weight in zip(norms, (wq, wk), strict=True):
        norm.weight.data.copy_(weight)
    theirs = modeling_qwen3.apply_rotary_pos_emb(
        *heads_first(norms[0](q), norms[1](k)), *(torch.cat([c, c], -1) for c in (cos, sin))
    )
    *ours, _ = qk_norm_rope_v1.reference(
        q,
        k,
        cos,
        sin,
        q_norm_weight=wq,
        k_norm_weight=wk,
        normalization_scope="per_head",
        rope_layout="half",
        norm_weight_mode="direct",
        norm_rounding="before_weight",
        rope_dtype="host",
    )
    for mine, other in zip(ours, heads_first(*theirs), strict=True):
        same(mine, other)


@BOTH
@pytest.mark.parametrize("family", ["gemma3", "qwen3_next"])
@SLOW_BOX
@given(b=few, t=few, h=few, d=widths, part=st.integers(1, 16), seed=seeds)
def test_offset_norms_round_after_the_weight_and_keep_the_tail(
    dtype: torch.dtype, family: str, b: int, t: int, h: int, d: int, part: int, seed: int
) -> None:
    """Gemma 3 turns every channel, Qwen3-Next the first ones; the tail keeps its norm."""
    make = maker(seed, dtype)
    rotary = d if family == "gemma3" else 2 * min(part, d // 2)
    q, k, w = make(b, t, h, d), make(b, t, h, d), make(d)
    cos, sin = (table.to(dtype) for table in tables(t, rotary, batch=b))
    full = [torch.cat([c, c], -1) for c in (cos, sin)]
    if family == "gemma3":
        norm = modeling_gemma3.Gemma3RMSNorm(d, eps=1e-6).to(dtype)
        turn = modeling_gemma3.apply_rotary_pos_emb
    else:
        norm = modeling_qwen3_next.Qwen3NextRMSNorm(d, eps=1e-6).to(dtype)
        turn = modeling_qwen3_next.apply_rotary_pos_emb
    norm.weight.data.copy_(w)
    theirs = turn(*heads_first(norm(q), norm(k)), *full)
    *ours, _ = qk_norm_rope_v1.reference(
        q,
        k,
        cos,
        sin,
        q_norm_weight=w,
        k_norm_weight=w,
        normalization_scope="per_head",
        rope_layout="half",
        norm_weight_mode="offset",
        norm_rounding="after_weight",
        rope_dtype="host",
    )
    for mine, other in zip(ours, heads_first(*theirs), strict=True):
        same(mine, other)
    assert torch.equal(ours[0][..., rotary:], norm(q)[..., rotary:])


@SLOW_BOX
@given(b=few, t=few, h=few, d=widths, seed=seeds)
def test_wan_norms_the_whole_projection_and_turns_neighbours(
    b: int, t: int, h: int, d: int, seed: int
) -> None:
    """The norm sees [B, T, H*D] before the heads are split; pairs are neighbours."""
    make = maker(seed, torch.float32)
    q, w = make(b, t, h, d), make(h * d)
    cos, sin = tables(t, d, batch=b)
    flat = nnf.rms_norm(q.flatten(2), (h * d,), w, eps=1e-5).unflatten(2, (h, d))
    turned = torch.view_as_complex(flat.unflatten(-1, (-1, 2)).contiguous())
    turned = turned * torch.complex(cos, sin)[:, :, None]
    ours, *_ = qk_norm_rope_v1.reference(
        q,
        q,
        cos,
        sin,
        q_norm_wide=w,
        k_norm_wide=w,
        normalization_scope="projection",
        rope_layout="interleaved",
        norm_weight_mode="direct",
        eps=1e-5,
    )
    close(ours, torch.view_as_real(turned).flatten(-2))


@SLOW_BOX
@given(b=few, t=few, h=st.integers(2, 4), d=widths, seed=seeds)
def test_scopes_differ(b: int, t: int, h: int, d: int, seed: int) -> None:
    """A loud head: normed on its own it has unit mean square, in the projection it has not."""
    make = maker(seed, torch.float32)
    q = make(b, t, h, d) + 1
    q[:, :, 0] *= 100
    cos, sin = tables(t, d, batch=b)
    rest = {"rope_layout": "half", "norm_weight_mode": "direct"}
    one, wide = torch.ones(d), torch.ones(h * d)
    per_head, *_ = qk_norm_rope_v1.reference(
        q, q, cos, sin, q_norm_weight=one, k_norm_weight=one, normalization_scope="per_head", **rest
    )
    projection, *_ = qk_norm_rope_v1.reference(
        q, q, cos, sin, q_norm_wide=wide, k_norm_wide=wide, normalization_scope="projection", **rest
    )
    size = per_head.square().mean(-1)
    torch.testing.assert_close(size, torch.ones_like(size), rtol=1e-3, atol=1e-3)
    assert float(projection.square().mean(-1)[:, :, 1:].max()) < 0.5


@BOTH
@SLOW_BOX
@given(t=few, h=few, d=widths, seed=seeds)
def test_qwen3_vl_vision_turns_in_float32(
    dtype: torch.dtype, t: int, h: int, d: int, seed: int
) -> None:
    """Its fused projection gives [T, 3*H*D] with the bias inside; tables repeat their halves."""
    make = maker(seed, dtype)
    packed, bias = make(1, t, 3 * h * d), make(3 * h * d)
    cos, sin = (torch.cat([c, c], -1) for c in tables(t, d))
    q, k, v = (packed + bias)[0].reshape(t, 3, h, d).permute(1, 0, 2, 3).unbind(0)
    theirs = modeling_qwen3_vl.apply_rotary_pos_emb_vision(q, k, cos[0], sin[0])
    ours = qkv_rope_v1.reference(packed, cos, sin, qkv_bias=bias, d=d, hq=h, hkv=h)
    for mine, other in zip(ours, (*theirs, v), strict=True):
        same(mine[0], other)
    behind = qkv_rope_v2.reference(q, k, cos[0], sin[0])
    for mine, other in zip(behind, theirs, strict=True):
        same(mine, other)


# ---------------------------------------------------------------- attention


@pytest.mark.parametrize("masked", [False, True], ids=["bare", "masked"])
@SLOW_BOX
@given(b=few, hkv=few, group=few, queries=few, keys=st.integers(1, 9), d=sizes, seed=seeds)
def test_attention_is_torchs(
    masked: bool, b: int, hkv: int, group: int, queries: int, keys: int, d: int, seed: int
) -> None:
    make = maker(seed, torch.float32)
    q, k, v = make(b, hkv * group, queries, d), make(b, hkv, keys, d), make(b, hkv, keys, d)
    mask = make(b, 1, queries, keys) if masked else None
    theirs = nnf.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True, scale=0.25)
    ours = attention_core_v1.reference(q, k, v, mask, scaling="given", scale=0.25)
    close(ours, theirs.transpose(1, 2))


# ---------------------------------------------------------------- gated delta


@BOTH
@pytest.mark.parametrize("form", ["recurrent", "chunk"])
@SLOW_BOX
@given(b=few, s=st.integers(1, 6), h=few, dk=widths, dv=widths, seed=seeds)
def test_gated_delta_is_qwen3_nexts(
    dtype: torch.dtype, form: str, b: int, s: int, h: int, dk: int, dv: int, seed: int
) -> None:
    """Keys and values of different widths, which the reference of flash-rt refuses."""
    make = maker(seed, dtype)
    q, k, v = make(b, s, h, dk), make(b, s, h, dk), make(b, s, h, dv)
    g, beta = -make(b, s, h).float().abs(), make(b, s, h).sigmoid()
    host = getattr(modeling_qwen3_next, f"torch_{form}_gated_delta_rule")
    theirs, state = host(
        q, k, v, g=g, beta=beta, output_final_state=True, use_qk_l2norm_in_kernel=True
    )
    ours, final = gated_delta_core_v1.reference(q, k, v, g, beta, qk_norm="in_core")
    tolerance = 2e-5 if dtype == torch.float32 else 2e-2
    close(ours, theirs.to(dtype), tolerance)
    torch.testing.assert_close(final, state.float(), rtol=tolerance, atol=tolerance)


@SLOW_BOX
@given(s=st.integers(2, 12), cut=st.integers(1, 11), d=widths, seed=seeds)
def test_the_state_is_carried_in_float32(s: int, cut: int, d: int, seed: int) -> None:
    """A prefill and a decode in bfloat16 give the bits of one long call."""
    make = maker(seed, torch.bfloat16)
    cut = min(cut, s - 1)
    q, k, v = (make(1, s, 2, d) for _ in range(3))
    g, beta = -make(1, s, 2).abs(), make(1, s, 2).sigmoid()
    whole, last = gated_delta_core_v1.reference(q, k, v, g, beta, qk_norm="in_core")
    first = [x[:, :cut] for x in (q, k, v, g, beta)]
    second = [x[:, cut:] for x in (q, k, v, g, beta)]
    y1, state = gated_delta_core_v1.reference(*first, qk_norm="in_core")
    y2, final = gated_delta_core_v1.reference(*second, state, qk_norm="in_core")
    assert state.dtype == final.dtype == torch.float32
    assert torch.equal(torch.cat([y1, y2], 1), whole) and torch.equal(final, last)


# ---------------------------------------------------------------- adaptive norms


@SLOW_BOX
@given(t=few, d=st.integers(2, 32), hidden=few, seed=seeds)
def test_cosmos_applies_silu_and_puts_the_shift_first(
    t: int, d: int, hidden: int, seed: int
) -> None:
    torch.manual_seed(seed)
    host = CosmosAdaLayerNormZero(d, hidden)
    x, cond = torch.randn(1, t, d), torch.randn(1, d)
    w = (host.linear_2.weight @ host.linear_1.weight).t()
    y, gate, _ = adaln_producer_v1.reference(
        x,
        cond,
        style_w=w,
        norm="layer",
        style="scale_shift_gate",
        style_order="shift_first",
        cond_activation="silu",
        epilogue="none",
    )
    theirs = host(x, cond)
    close(y, theirs[0])
    assert gate is not None
    close(gate, theirs[1][0])


@SLOW_BOX
@given(t=few, d=st.integers(2, 32), c=few, seed=seeds)
def test_silu_on_cond_is_a_choice(t: int, d: int, c: int, seed: int) -> None:
    make = maker(seed, torch.float32)
    x, cond, w = make(t, d), make(1, c), make(c, 2 * d)
    made = {}
    for choice, given_cond in {"none": nnf.silu(cond), "silu": cond}.items():
        made[choice], gate, _ = adaln_producer_v1.reference(
            x,
            given_cond,
            pair_w=w,
            norm="layer",
            style="scale_shift",
            style_order="scale_first",
            cond_activation=choice,
            epilogue="none",
        )
        assert gate is None
    assert torch.equal(made["none"], made["silu"])


@SLOW_BOX
@given(t=few, d=st.integers(2, 32), c=few, gated=st.booleans(), seed=seeds)
def test_a_pending_residual_is_normed_with_its_gate(
    t: int, d: int, c: int, gated: bool, seed: int
) -> None:
    make = maker(seed, torch.float32)
    x, residual, cond, w = make(t, d), make(t, d), make(1, c), make(c, 3 * d)
    branch_gate = make(1, d) if gated else None
    rest = {
        "style_w": w,
        "norm": "rms",
        "style": "scale_shift_gate",
        "style_order": "scale_first",
        "cond_activation": "none",
    }
    total = residual + (x if branch_gate is None else x * branch_gate)
    plain = adaln_producer_v1.reference(total, cond, **rest, epilogue="none")
    folded = adaln_producer_v1.reference(
        x, cond, residual, branch_gate, **rest, epilogue="gate_residual"
    )
    assert folded[2] is not None
    close(folded[2], total)
    close(folded[0], plain[0])


# ---------------------------------------------------------------- modulated blocks


@BOTH
@pytest.mark.parametrize("cross_norm", [False, True], ids=["bare", "cross_attn_norm"])
@SLOW_BOX
@given(b=few, m=few, heads=few, width=st.sampled_from([2, 4, 8]), f=sizes, seed=seeds)
def test_a_table_with_a_row_a_token_is_wans_block(
    dtype: torch.dtype, cross_norm: bool, b: int, m: int, heads: int, width: int, f: int, seed: int
) -> None:
    """Every product and every rounding is the host's own, so bfloat16 is bit for bit too."""
    torch.manual_seed(seed)
    d = heads * width
    host = WanTransformerBlock(d, f, heads, cross_attn_norm=cross_norm).to(dtype).eval()
    nn.init.normal_(host.scale_shift_table)
    x, text = torch.randn(b, m, d).to(dtype), torch.randn(b, 3, d).to(dtype)
    table = torch.randn(b, m, 6, d).to(dtype)
    attn, up, down = host.attn1, host.ffn.net[0].proj, host.ffn.net[2]
    seen: dict[str, Tensor] = {}

    def core(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        q, k = attn.norm_q(q), attn.norm_k(k)
        split = [part.unflatten(2, (heads, -1)).transpose(1, 2) for part in (q, k, v)]
        mixed = nnf.scaled_dot_product_attention(*split)
        return mixed.transpose(1, 2).flatten(2).type_as(q)

    def cross(h: Tensor) -> Tensor:
        return host.attn2(host.norm2(h.float()).type_as(h), text, None, None)

    with torch.no_grad():
        q, k, v, y = modnorm_qkv_chain_v3.reference(
            x,
            table=table,
            steps=host.scale_shift_table[0],
            w_q=attn.to_q.weight.t(),
            b_q=attn.to_q.bias,
            w_k=attn.to_k.weight.t(),
            b_k=attn.to_k.bias,
            w_v=attn.to_v.weight.t(),
            b_v=attn.to_v.bias,
            w_o=attn.to_out[0].weight.t(),
            b_o=attn.to_out[0].bias,
            w_up=up.weight.t(),
            b_up=up.bias,
            w_down=down.weight.t(),
            b_down=down.bias,
            self_attention=core,
            cross_attention=cross,
            modulation="per_token_table",
            fanout="qkv",
            eps=1e-6,
            record=seen.__setitem__,
        )
        places = {"attn_in": attn.to_q, "o_in": attn.to_out[0], "ffn_in": up, "ffn_hid": down}
        met: dict[str, Tensor] = {}
        for name, module in places.items():
            module.register_forward_pre_hook(lambda _, args, n=name: met.__setitem__(n, args[0]))
        theirs = host(x, text, table, None)
    assert q is None and k is None and v is None and y is not None
    same(y, theirs) if dtype == torch.bfloat16 else close(y, theirs)
    assert list(seen) == list(places)
    for name, value in seen.items():
        same(value, met[name]) if dtype == torch.bfloat16 else close(value, met[name])


# ---------------------------------------------------------------- experts


@pytest.mark.parametrize("normalized", [False, True])
@BOTH
@SLOW_BOX
@given(t=few, d=widths, f=widths, experts=st.integers(1, 6), top=st.integers(1, 6), seed=seeds)
def test_experts_are_qwen3_moes(
    normalized: bool, dtype: torch.dtype, t: int, d: int, f: int, experts: int, top: int, seed: int
) -> None:
    torch.manual_seed(seed)
    top = min(top, experts)
    config = Qwen3MoeConfig(
        hidden_size=d,
        moe_intermediate_size=f,
        num_experts=experts,
        num_experts_per_tok=top,
        norm_topk_prob=normalized,
        hidden_act="silu",
    )
    config._experts_implementation = "eager"
    host = modeling_qwen3_moe.Qwen3MoeSparseMoeBlock(config)
    for parameter in host.parameters():
        nn.init.normal_(parameter, std=parameter.shape[-1] ** -0.5)
    host = host.to(dtype)
    x = torch.randn(1, t, d).to(dtype)
    ours = moe_experts_v1.reference(
        x,
        w_router=host.gate.weight.t(),
        w_gate_up=host.experts.gate_up_proj.mT,
        w_down=host.experts.down_proj.mT,
        activation="silu",
        weights="normalized" if normalized else "plain",
        k=top,
    )
    close(ours, host(x), 2e-5 if dtype == torch.float32 else 3e-2)
