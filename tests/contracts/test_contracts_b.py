"""The contract packages of norms, rotations, attention and the delta rule: they compute what they
say, trace as the real ones do, and name the argument that breaks the ABI.

Values are held against arithmetic written here head by head, position by position or step by
step, not against the helpers that the packages compute with.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn import functional as nnf

from tests.contracts import staging
from tests.contracts.test_contracts_a import (
    Args,
    centred,
    close,
    codes,
    copied,
    from_nvfp4,
    ids,
    normed,
    random,
    refused,
    scale,
    wrongly,
)

RNQ, ADA, QKV = "flashrt-residual-norm-quant", "flashrt-adaptive-norms", "flashrt-qkv-cache-rope"
ALN, FA2, MHA = "adaptive-layernorm-producers", "fa2-seqused-runtime", "masked-mha-runtime"
KV8, GDA, CONV = "fp8-kv-attention", "gated-delta-attention", "causal-conv1d-state"
CROSS, FA4 = "fp8-cross-attention-blackwell", "fa4-cute-runtime"

M, D = 5, 64
B, S, HQ, HKV = 2, 3, 4, 2

Key = tuple[str, str]
Made = Callable[[ModuleType], Args]
Wanted = Callable[..., tuple[Tensor, ...]]


def coded(x: Tensor, by: float) -> Tensor:
    return (x.float() / by).clamp(-448, 448).to(torch.float8_e4m3fn)


def tables(*shape: int) -> tuple[Tensor, Tensor]:
    angles = random(*shape).float()
    return angles.cos().bfloat16(), angles.sin().bfloat16()


def rotated(row: Tensor, cos: Tensor, sin: Tensor, pairs: bool) -> Tensor:
    """One head of one position, value by value; cos and sin by frequency."""
    half = row.numel() // 2
    out = torch.empty(row.numel())
    for i in range(half):
        one, other = (2 * i, 2 * i + 1) if pairs else (i, i + half)
        a, b, c, s = (float(t) for t in (row[one], row[other], cos[i], sin[i]))
        out[one], out[other] = a * c - b * s, b * c + a * s
    return out


def each(x: Tensor, heads: int, by: Callable[[Tensor, int, int], Tensor]) -> Tensor:
    """x [B, S, heads * D] with every head put through ``by(row, batch, position)``."""
    x = x.float().unflatten(2, (heads, -1))
    out = torch.empty_like(x)
    for b in range(x.shape[0]):
        for s in range(x.shape[1]):
            for h in range(heads):
                out[b, s, h] = by(x[b, s, h], b, s)
    return out


def parted(packed: Tensor, heads: tuple[int, int, int], size: int) -> tuple[Tensor, ...]:
    return packed.float().split([one * size for one in heads], dim=2)


# ---------------------------------------------------------------- norms


def styled(x: Tensor, weight: Tensor, style: Tensor, **_: Any) -> tuple[Tensor, Tensor]:
    size = x.shape[1]
    style = style.expand(x.shape[0], -1)
    out = normed(x, weight) * (1 + style[:, :size].float()) + style[:, size : 2 * size].float()
    return out, style[:, 2 * size :]


def gated(residual: Tensor, x: Tensor, gate: Tensor, **a: Tensor) -> tuple[Tensor, ...]:
    total = (residual.float() + x.float() * gate.float()).bfloat16()
    out, following = styled(total, a["weight"], a["style"])
    return total, coded(out, 0.05), following


def produced(x: Tensor, by: Tensor, shift: Tensor) -> Tensor:
    flat = centred(x, torch.ones(x.shape[1]), torch.zeros(x.shape[1]), 1e-5)
    return (flat * (1 + by.float()) + shift.float()).bfloat16()


def added(residual: Tensor, x: Tensor, weight: Tensor, **_: Any) -> tuple[Tensor]:
    total = (residual.float() + x.float()).bfloat16()
    return (coded(normed(total, weight), 0.05),)


def conv(x: Tensor, w: Tensor, state: Tensor, bias: Tensor | None = None) -> Tensor:
    line = torch.cat((state.float(), x.float().transpose(1, 2)), dim=2)
    taps = w.shape[1]
    rows = [(line[:, :, t : t + taps] * w.float()).sum(-1) for t in range(x.shape[1])]
    return nnf.silu(torch.stack(rows, dim=1) + (0 if bias is None else bias.float()))


# ---------------------------------------------------------------- rotations


def split_bias_rope(packed_qkv: Tensor, qkv_bias: Tensor, **a: Any) -> tuple[Tensor, ...]:
    q, k, v = parted(packed_qkv.float() + qkv_bias.float(), (HQ, HKV, HKV), D)

    def turn(row: Tensor, b: int, s: int) -> Tensor:
        return rotated(row, a["cos"][b, s], a["sin"][b, s], pairs=False)

    return each(q, HQ, turn), each(k, HKV, turn), v.unflatten(2, (HKV, D))


def split_norm_rope(packed_qkv: Tensor, **a: Any) -> tuple[Tensor, ...]:
    q, k, v = parted(packed_qkv, (HQ, HKV, HKV), 128)

    def by(weight: Tensor) -> Callable[[Tensor, int, int], Tensor]:
        return lambda row, b, s: rotated(
            normed(row, weight), a["cos"][b, s], a["sin"][b, s], pairs=False
        )

    return (
        each(q, HQ, by(a["q_norm_weight"])),
        each(k, HKV, by(a["k_norm_weight"])),
        v.unflatten(2, (HKV, 128)),
    )


def split_row_norm_rope(packed_qkv: Tensor, qkv_bias: Tensor, **a: Any) -> tuple[Tensor, ...]:
    q, k, v = parted(packed_qkv.float() + qkv_bias.float(), (HQ, HQ, HQ), D)

    def turn(row: Tensor, b: int, s: int) -> Tensor:
        if s >= a["rope_seq_len"]:
            return row
        return rotated(row, a["freqs_re"][s], a["freqs_im"][s], pairs=True)

    q, k = normed(q, a["norm_q_weight"]), normed(k, a["norm_k_weight"])
    return each(q, HQ, turn), each(k, HQ, turn), v.unflatten(2, (HQ, D))


def split_rope_cache(packed_qkv: Tensor, rope: Tensor, **a: Any) -> tuple[Tensor, ...]:
    q, k, v = parted(packed_qkv, (HQ, HKV, HKV), D)

    def turn(row: Tensor, b: int, s: int) -> Tensor:
        return rotated(row, rope[s, 0::2], rope[s, 1::2], pairs=True)

    caches = [a["k_cache"].float(), a["v_cache"].float()]
    at = slice(a["cache_offset"], a["cache_offset"] + packed_qkv.shape[1])
    caches[0][:, at], caches[1][:, at] = each(k, HKV, turn), v.unflatten(2, (HKV, D))
    return each(q, HQ, turn), *caches


# ---------------------------------------------------------------- attention


def attention(q: Tensor, k: Tensor, v: Tensor, used: list[int] | None = None) -> Tensor:
    """Head by head, of [B, S, H, D]."""
    out = torch.empty(q.shape)
    group = q.shape[2] // k.shape[2]
    for b in range(q.shape[0]):
        keys = slice(0, k.shape[1] if used is None else used[b])
        for h in range(q.shape[2]):
            mine, theirs = k[b, keys, h // group].float(), v[b, keys, h // group].float()
            weights = (q[b, :, h].float() @ mine.T / math.sqrt(q.shape[3])).softmax(-1)
            out[b, :, h] = weights @ theirs
    return out


def fa2(m: ModuleType) -> Args:
    q, k, v = random(B, S, HQ, D), random(B, 7, HKV, D), random(B, 7, HKV, D, seed=1)
    out, lse = m.allocate_outputs(q)
    return {"q": q, "k": k, "v": v, "out": out, "softmax_lse": lse}


def mha(m: ModuleType) -> Args:
    q, k, v = random(S, HQ, D), random(7, HQ, D), random(7, HQ, D, seed=1)
    logits, out = m.allocate_workspace(q, k), torch.empty_like(q)
    return {"q": q, "k": k, "v": v, "logits": logits, "out": out}


def paged(m: ModuleType) -> Args:
    semaphores, scratch = m.allocate_workspace(q_seq=2, scratch_mb=1)
    return {
        "q": random(2, 16, 128),
        "k_cache": codes(3, 32, 8, 128),
        "v_cache": codes(3, 32, 8, 128, seed=1),
        "page_table": torch.tensor([2, 0], dtype=torch.int32),
        "seq_lens": torch.tensor([40], dtype=torch.int32),
        "mask": m.causal_spec_mask(2),
        "semaphores": semaphores,
        "scratch": scratch,
        "max_seq_len": 64,
        "kv_scale": scale(0.5),
    }


def paged_value(q: Tensor, k_cache: Tensor, v_cache: Tensor, **_: Any) -> tuple[Tensor]:
    k, v = (0.5 * torch.cat((one[2].float(), one[0].float())) for one in (k_cache, v_cache))
    # The first query does not see the second's key, which is the last of the 40.
    rows = [attention(q[None, t : t + 1], k[None, : 39 + t], v[None, : 39 + t]) for t in (0, 1)]
    return (torch.cat(rows, dim=1)[0],)


def cross(m: ModuleType) -> Args:
    return {
        "query": codes(B, S, HQ, D),
        "key": codes(B, 7, HKV, D),
        "value": codes(B, 7, HKV, D, seed=1),
        "query_scale": scale(0.5),
        "key_scale": scale(0.25),
        "value_scale": scale(2.0),
    }


# ---------------------------------------------------------------- the delta rule


def delta(g: torch.dtype, state: torch.dtype) -> Made:
    def make(m: ModuleType) -> Args:
        made = {name: random(B, 3, 128, seed=seed) for seed, name in enumerate("qkv")}
        return made | {
            "g": -random(B, 3).float().abs().to(g),
            "beta": random(B, 3).sigmoid(),
            "state_in": random(B, 3, 128, 128, size=0.1).to(state),
        }

    return make


def step(q: Tensor, k: Tensor, v: Tensor, g: float, beta: float, state: Tensor) -> Tensor:
    """One head, the state in place: the output."""
    q, k = (one.float() / (one.float().square().sum() + 1e-6).sqrt() for one in (q, k))
    state.mul_(math.exp(g))
    state.add_(torch.outer(k, beta * (v.float() - state.T @ k)))
    return state.T @ q / math.sqrt(128)


def delta_value(q: Tensor, k: Tensor, v: Tensor, **a: Tensor) -> tuple[Tensor, ...]:
    state, out = a["state_in"].float(), torch.empty(q.shape)
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            g, beta = float(a["g"][b, h]), float(a["beta"][b, h])
            out[b, h] = step(q[b, h], k[b, h], v[b, h], g, beta, state[b, h])
    return out, state


def gates(heads: int) -> Args:
    return {
        "a": random(S, heads),
        "b": random(S, heads, seed=1),
        "neg_exp_A_log": -random(heads).float().exp(),
        "dt_bias": random(heads, seed=1).float(),
    }


def gates_value(a: Tensor, b: Tensor, **w: Tensor) -> tuple[Tensor, Tensor]:
    grown = (a.float() + w["dt_bias"]).exp().log1p()
    return w["neg_exp_A_log"] * grown, 1 / (1 + (-b.float()).exp())


def split(conv_out: Tensor, spread: bool = True) -> tuple[Tensor, ...]:
    heads = [conv_out[:, at : at + 128] for at in range(0, conv_out.shape[1], 128)]
    times = (len(heads) - 32) // 16 if spread else 1
    q = [one for one in heads[:16] for _ in range(times)]
    k = [one for one in heads[16:32] for _ in range(times)]
    return torch.stack(q, 1), torch.stack(k, 1), torch.stack(heads[32:], 1)


def chunk(m: ModuleType, heads: int) -> Args:
    state = random(heads, 128, 128, size=0.1).float()
    return {"conv_out": random(S, (32 + heads) * 128), **gates(heads), "state": state}


def chunk_value(conv_out: Tensor, state: Tensor, **a: Tensor) -> tuple[Tensor]:
    q, k, v = split(conv_out)
    g, beta = gates_value(**a)
    out = torch.empty(v.shape)
    for s in range(v.shape[0]):
        for h in range(v.shape[1]):
            out[s, h] = step(q[s, h], k[s, h], v[s, h], float(g[s, h]), float(beta[s, h]), state[h])
    return (out,)


BF16, F32 = torch.bfloat16, torch.float32
COS, SIN = tables(B, S, D // 2)
COS128, SIN128 = (torch.cat((one, one), -1) for one in tables(B, S, 64))
WIDTH = (HQ + 2 * HKV) * D


def norm(**more: Any) -> Args:
    return {"x": random(M, D), "weight": random(D)} | more


# A right call of each entry point, and all that it returns.
CASES: dict[Key, tuple[Made, Wanted]] = {
    (RNQ, "layer_norm_bf16"): (
        lambda m: norm(bias=random(D, seed=1), eps=1e-6),
        lambda x, weight, bias, eps: (centred(x, weight, bias),),
    ),
    (RNQ, "rms_norm_quant_fp8_static_bf16"): (
        lambda m: norm(scale=scale(0.05)),
        lambda x, weight, scale: (coded(normed(x, weight), 0.05),),
    ),
    (RNQ, "residual_add_rms_norm_quant_fp8_static_bf16"): (
        lambda m: norm(scale=scale(0.05), residual=random(M, D, seed=1)),
        added,
    ),
    (ADA, "ada_rms_norm_style_bf16"): (lambda m: norm(style=random(1, 3 * D)), styled),
    (ADA, "gate_residual_ada_norm_fp8_static_bf16"): (
        lambda m: norm(
            residual=random(M, D, seed=1),
            gate=random(M, D, seed=2),
            style=random(M, 3 * D),
            scale=scale(0.05),
        ),
        gated,
    ),
    (ALN, "ada_layer_norm_quant_fp8_bf16"): (
        lambda m: {
            "x": random(M, D),
            "scale": random(D),
            "shift": random(D, seed=1),
            "act_scale": scale(0.05),
        },
        lambda x, scale, shift, act_scale: (coded(produced(x, scale, shift), 0.05),),
    ),
    (ALN, "ada_layer_norm_quant_fp8_ptok_table_bf16"): (
        lambda m: {
            "x": random(M, D),
            "temb": random(M, 6, D),
            "table": random(6, D).float(),
            "act_scale": scale(0.05),
            "shift_idx": 3,
            "scale_idx": 1,
        },
        lambda x, temb, table, **_: (
            coded(produced(x, temb[:, 1].float() + table[1], temb[:, 3].float() + table[3]), 0.05),
        ),
    ),
    (CONV, "causal_conv1d_update_bf16"): (
        lambda m: {
            "x_new": random(B, D),
            "w": random(D, 4),
            "state": random(B, D, 3),
            "bias": random(D),
        },
        lambda x_new, w, state, bias: (conv(x_new[:, None], w, state, bias)[:, 0],),
    ),
    (CONV, "causal_conv1d_update_chunk_parallel_bf16"): (
        lambda m: {"x": random(B, S, D), "w": random(D, 4), "state": random(B, D, 3)},
        lambda **a: (conv(**a),),
    ),
    (QKV, "qkv_split_rope_kvcache_bf16"): (
        lambda m: {
            "packed_qkv": random(B, S, WIDTH),
            "rope": random(S + 2, D),
            "q_heads": HQ,
            "kv_heads": HKV,
            "head_dim": D,
            "cache_offset": 2,
            "k_cache": random(B, 8, HKV, D),
            "v_cache": random(B, 8, HKV, D, seed=1),
        },
        split_rope_cache,
    ),
    (QKV, "qkv_split_bias_rope_bf16"): (
        lambda m: {
            "packed_qkv": random(B, S, WIDTH),
            "qkv_bias": random(WIDTH),
            "cos": COS,
            "sin": SIN,
            "q_heads": HQ,
            "kv_heads": HKV,
            "head_dim": D,
        },
        split_bias_rope,
    ),
    (QKV, "qkv_split_per_head_norm_rope_bf16"): (
        lambda m: {
            "packed_qkv": random(B, S, (HQ + 2 * HKV) * 128),
            "q_norm_weight": random(128),
            "k_norm_weight": random(128, seed=1),
            "cos": COS128,
            "sin": SIN128,
            "q_heads": HQ,
            "kv_heads": HKV,
        },
        split_norm_rope,
    ),
    (QKV, "qkv_split_bias_norm_rope_v_bf16"): (
        lambda m: {
            "packed_qkv": random(B, S, 3 * HQ * D),
            "qkv_bias": random(3 * HQ * D),
            "norm_q_weight": random(HQ * D),
            "norm_k_weight": random(HQ * D, seed=1),
            "freqs_re": random(S, D // 2).float(),
            "freqs_im": random(S, D // 2, seed=1).float(),
            "heads": HQ,
            "head_dim": D,
            "rope_seq_len": S - 1,
        },
        split_row_norm_rope,
    ),
    (FA2, "forward_static"): (fa2, lambda q, k, v, **_: (attention(q, k, v),)),
    (FA2, "forward_seqused_static"): (
        lambda m: fa2(m) | {"seqused_k": torch.tensor([4, 7], dtype=torch.int32)},
        lambda q, k, v, **_: (attention(q, k, v, [4, 7]),),
    ),
    (FA4, "forward_static"): (
        lambda m: {
            "q": random(B, S, HQ, D),
            "k": random(B, 7, HKV, D),
            "v": random(B, 7, HKV, D, seed=1),
            "out": random(B, S, HQ, D, seed=2),
            "seqused_k": torch.tensor([4, 7], dtype=torch.int32),
        },
        lambda q, k, v, **_: (attention(q, k, v, [4, 7]),),
    ),
    (MHA, "forward_static"): (mha, lambda q, k, v, **_: (attention(q[None], k[None], v[None])[0],)),
    (KV8, "xqa_bf16_fp8kv"): (paged, paged_value),
    (CROSS, "fp8_gqa_cross_attention_bf16"): (
        cross,
        lambda query, key, value, **_: (
            attention(0.5 * query.float(), 0.25 * key.float(), 2 * value.float()),
        ),
    ),
    (GDA, "gated_delta_recurrent_inout_bf16"): (delta(BF16, BF16), delta_value),
    (GDA, "gated_delta_recurrent_inout_gf32_bf16"): (delta(F32, BF16), delta_value),
    (GDA, "gated_delta_recurrent_inout_gf32_sf32_bf16"): (delta(F32, F32), delta_value),
    (GDA, "lin_split_qkv_broadcast_bf16"): (lambda m: {"conv_out": random(2, 10240)}, split),
    (GDA, "lin_split_qkv_broadcast_h_bf16"): (lambda m: {"conv_out": random(2, 8192)}, split),
    (GDA, "lin_split_qkv_gqa_bf16"): (
        lambda m: {"conv_out": random(2, 10240)},
        lambda conv_out: split(conv_out, spread=False),
    ),
    (GDA, "gdn_gating_bf16"): (lambda m: gates(48), gates_value),
    (GDA, "gdn_gating_h_bf16"): (lambda m: gates(32), gates_value),
    (GDA, "gdn_chunk_from_conv_smem_bf16"): (lambda m: chunk(m, 48), chunk_value),
    (GDA, "gdn_chunk_from_conv_smem_h_bf16"): (lambda m: chunk(m, 32), chunk_value),
}


def call(key: Key, **change: Any) -> Any:
    module = staging.load(key[0])
    return getattr(module, key[1])(**(CASES[key][0](module) | change))


def same(found: Tensor, wanted: Tensor) -> None:
    """Two roundings apart at most; a code one step, where a sum went the other way."""
    if found.dtype != torch.float8_e4m3fn:
        return close(found, wanted)
    steps = (found.view(torch.uint8).int() - wanted.view(torch.uint8).int()).abs()
    assert int(steps.max()) <= 1 and float((steps > 0).float().mean()) < 0.02
    return None


@pytest.mark.parametrize("key", CASES, ids=ids(CASES))
def test_a_right_call_computes_the_op(key: Key) -> None:
    module = staging.load(key[0])
    make, value = CASES[key]
    args = make(module)
    wanted = value(**copied(args))
    found = getattr(module, key[1])(**args)
    found = found if isinstance(found, tuple) else (found,)
    assert len(found) == len(wanted)
    for one, other in zip(found, wanted, strict=True):
        same(one, other)


# ---------------------------------------------------------------- what is written in place


def test_a_residual_is_added_to_in_place() -> None:
    residual, x = random(M, D, seed=1), random(M, D)
    total = (residual.float() + x.float()).bfloat16()
    call((RNQ, "residual_add_rms_norm_quant_fp8_static_bf16"), residual=residual, x=x)
    assert torch.equal(residual, total)
    given = random(M, D, seed=1)
    kept, _, _ = call((ADA, "gate_residual_ada_norm_fp8_static_bf16"), residual=given)
    assert kept is given


def test_steps_of_a_conv_leave_the_state_that_a_chunk_leaves() -> None:
    module = staging.load(CONV)
    x, w, state = random(B, 5, D), random(D, 4), random(B, D, 3)
    stepped, chunked = state.clone(), state.clone()
    rows = [module.causal_conv1d_update_bf16(x[:, t].contiguous(), w, stepped) for t in range(5)]
    whole = module.causal_conv1d_update_chunk_parallel_bf16(x, w, chunked)
    close(torch.stack(rows, 1), whole.float())
    assert torch.equal(stepped, chunked)
    assert torch.equal(stepped, x[:, 2:].transpose(1, 2))


def test_a_state_may_be_written_where_it_was_read() -> None:
    key = (GDA, "gated_delta_recurrent_inout_gf32_sf32_bf16")
    args = CASES[key][0](staging.load(GDA))
    apart = call(key)
    state = args["state_in"].clone()
    out, written = call(key, state_in=state, state_out=state)
    assert written is state and torch.equal(state, apart[1]) and torch.equal(out, apart[0])


def test_caches_are_made_where_none_are_given() -> None:
    key = (QKV, "qkv_split_rope_kvcache_bf16")
    _, given, _ = call(key, k_cache=torch.zeros(B, 8, HKV, D).bfloat16())
    _, k, v = call(key, k_cache=None, v_cache=None, max_seq_len=8)
    assert torch.equal(k, given) and v.shape == k.shape
    with pytest.raises(RuntimeError, match="v_cache: one cache without the other"):
        call(key, v_cache=None)


def test_wide_tables_of_a_rotation_are_the_narrow_ones_twice() -> None:
    key = (QKV, "qkv_split_bias_rope_bf16")
    wide = call(key, cos=torch.cat((COS, COS), -1), sin=torch.cat((SIN, SIN), -1))
    assert all(torch.equal(a, b) for a, b in zip(wide, call(key), strict=True))


# ---------------------------------------------------------------- forms of attention


def test_causal_attention_sees_what_came_before() -> None:
    module = staging.load(FA2)
    q, k, v = (random(1, 4, 2, 128, seed=seed) for seed in range(3))
    out, lse = module.allocate_outputs(q)
    module.forward_static(q, k, v, out=out, softmax_lse=lse, causal=True)
    for t in range(4):
        close(out[:, t : t + 1], attention(q[:, t : t + 1], k[:, : t + 1], v[:, : t + 1]))
    other = torch.empty_like(q)
    staging.load(FA4).forward_static(q, k, v, other, causal=True)
    assert torch.equal(other, out)


def test_attention_takes_views_with_heads_first() -> None:
    module = staging.load(FA2)
    args = fa2(module)
    plain = module.forward_static(**args)
    for name in ("q", "k", "v"):
        args[name] = args[name].transpose(1, 2).contiguous().transpose(1, 2)
    out, lse = module.allocate_outputs(args["q"])
    assert out.stride() == args["q"].stride()
    assert torch.equal(module.forward_static(**(args | {"out": out, "softmax_lse": lse})), plain)


def test_split_keys_give_what_whole_ones_give(monkeypatch: pytest.MonkeyPatch) -> None:
    module = staging.load(FA2)
    q, k, v = random(1, 1, 1, D), random(1, 300, 1, D), random(1, 300, 1, D, seed=1)
    assert module.allocate_workspace(q, k) is None
    monkeypatch.setattr(module, "SMS", 132)
    workspace = module.allocate_workspace(q, k)
    out, lse = module.allocate_outputs(q)
    module.forward_static(q, k, v, out=out, softmax_lse=lse, workspace=workspace)
    close(out, attention(q, k, v))
    assert module.allocate_workspace(random(1, 1, 1, 192), random(1, 300, 1, 192)) is None
    with pytest.raises(RuntimeError, match="workspace: not from allocate_workspace"):
        module.forward_static(q, k, v, out=out, softmax_lse=lse, workspace=(out, lse))
    other = module.allocate_workspace(q, random(1, 400, 1, D))
    wide = random(1, 2, 1, D)
    out, lse = module.allocate_outputs(wide)
    with pytest.raises(RuntimeError, match="workspace: axis 3 is 1, not 2"):
        module.forward_static(wide, k, v, out=out, softmax_lse=lse, workspace=other)


def test_rows_of_one_buffer_are_taken_in_bf16_only() -> None:
    module = staging.load(MHA)
    packed = random(S, 3, HQ, D)
    q, k, v = packed.unbind(1)
    args = {"logits": module.allocate_workspace(q, k), "out": torch.empty(q.shape).bfloat16()}
    close(module.forward_static(q, k, v, **args), attention(q[None], k[None], v[None])[0])
    with pytest.raises(RuntimeError, match="v: token strides differ"):
        module.forward_static(q, k, v.contiguous(), **args)
    q, k, v = packed.half().unbind(1)
    with pytest.raises(RuntimeError, match="q: not contiguous"):
        module.forward_static(q, k, v, logits=args["logits"].half(), out=args["out"].half())


# ---------------------------------------------------------------- NVFP4 producers


def test_a_norm_ends_in_nvfp4() -> None:
    module = staging.load(ALN)
    x, by, shift = random(M, D), random(D), random(D, seed=1)
    packed, sf = module.ada_layer_norm_quant_nvfp4_swizzled_bf16(x, by, shift)
    wanted = produced(x, by, shift).float()
    assert nnf.cosine_similarity(from_nvfp4(packed, sf).flatten(), wanted.flatten(), dim=0) > 0.99
    packed, sf = module.layer_norm_no_affine_quant_nvfp4_swizzled_bf16(x)
    wanted = produced(x, torch.zeros(D), torch.zeros(D)).float()
    assert nnf.cosine_similarity(from_nvfp4(packed, sf).flatten(), wanted.flatten(), dim=0) > 0.99


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"x": random(M, 40)}, "axis 1 of x: 40 is no multiple of 16"),
        ({"x": random(M, D).float()}, "x: float32, not bfloat16"),
        ({"scale": random(1, D)}, r"scale: shape \[1, 64\]"),
        ({"shift": random(D).float()}, "shift: float32"),
        ({"eps": -1.0}, "eps: -1.0"),
        ({"packed": torch.zeros(M, D, dtype=torch.uint8)}, "packed: axis 1 is 64, not 32"),
        ({"sf_swizzled": torch.zeros(20, dtype=torch.uint8)}, "sf_swizzled: 20 bytes, not 512"),
    ],
)
def test_a_wrong_argument_of_a_norm_in_nvfp4_is_told(change: Args, told: str) -> None:
    args = {"x": random(M, D), "scale": random(D), "shift": random(D)} | change
    with pytest.raises(RuntimeError, match=told):
        staging.load(ALN).ada_layer_norm_quant_nvfp4_swizzled_bf16(**args)


# ---------------------------------------------------------------- tracing


@pytest.mark.parametrize(
    "key",
    [
        (RNQ, "residual_add_rms_norm_quant_fp8_static_bf16"),
        (ADA, "gate_residual_ada_norm_fp8_static_bf16"),
        (ALN, "ada_layer_norm_quant_fp8_ptok_table_bf16"),
        (QKV, "qkv_split_rope_kvcache_bf16"),
        (FA2, "forward_static"),
        (MHA, "forward_static"),
        (GDA, "gated_delta_recurrent_inout_gf32_sf32_bf16"),
        (CONV, "causal_conv1d_update_bf16"),
    ],
    ids="{0[0]}.{0[1]}".format,
)
def test_a_call_is_traced_whole(key: Key) -> None:
    module = staging.load(key[0])
    args, entry = CASES[key][0](module), getattr(module, key[1])
    wanted = entry(**copied(args))
    traced = torch.compile(lambda given: entry(**given), fullgraph=True, backend="aot_eager")
    found = traced(copied(args))
    pairs = zip(found, wanted, strict=True) if isinstance(found, tuple) else [(found, wanted)]
    # Compared as bytes: torch does not compare FP8.
    assert all(torch.equal(a.view(torch.uint8), b.view(torch.uint8)) for a, b in pairs)


def test_what_has_no_fake_is_not_traced() -> None:
    module = staging.load(FA4)
    args = CASES[FA4, "forward_static"][0](module)
    traced = torch.compile(
        lambda given: module.forward_static(**given), fullgraph=True, backend="aot_eager"
    )
    with pytest.raises(Exception, match="forward_static"):
        traced(args)


# ---------------------------------------------------------------- wrong calls

FREE = {
    # The other argument's size, or the result's, follows this one's.
    ("size", "k", MHA),
    # Views are taken where the strides allow it.
    *(("layout", name, package) for name in ("q", "k", "v", "out") for package in (FA2, FA4)),
    # Pages come in any shape.
    ("axes", "page_table", KV8),
    ("size", "page_table", KV8),
    # Leading axes of one are taken.
    ("axes", "q", KV8),
}


@pytest.mark.parametrize("key", CASES, ids=ids(CASES))
def test_each_wrong_argument_is_told_by_name(key: Key) -> None:
    module = staging.load(key[0])
    entry, args = getattr(module, key[1]), CASES[key][0](module)
    tried = 0
    for name, value in args.items():
        for kind, wrong in wrongly(value).items():
            if (kind, name, key[0]) in FREE or (kind == "layout" and wrong.is_contiguous()):
                continue
            if kind == "alignment" and value.dtype == torch.int32:
                continue  # read by elements
            told = refused(entry, copied(args) | {name: wrong}, f"{kind} of {name}")
            if kind not in ("size", "axes"):  # a size that two share may be told at the other
                assert re.search(rf"\b{name}\b", told), (name, kind, told)
            tried += 1
        with pytest.raises((RuntimeError, TypeError), match=name):
            entry(**(copied(args) | {name: "no such thing"}))
    assert tried >= 2 * sum(isinstance(one, Tensor) for one in args.values())


@pytest.mark.parametrize(
    ("key", "change", "told"),
    [
        ((RNQ, "layer_norm_bf16"), {"x": random(M, 63)}, "axis 1 of x: 63"),
        ((RNQ, "layer_norm_bf16"), {"eps": float("nan")}, "eps: nan"),
        ((RNQ, "layer_norm_bf16"), {"bias": None}, "bias: not a tensor"),
        ((ADA, "ada_rms_norm_style_bf16"), {"style": random(2, 3 * D)}, "style: 2 rows for 5"),
        (
            (ADA, "gate_residual_ada_norm_fp8_static_bf16"),
            {"gate": random(1, D)},
            "gate: axis 0 is 1, not 5",
        ),
        (
            (ALN, "ada_layer_norm_quant_fp8_ptok_table_bf16"),
            {"scale_idx": 6},
            r"scale_idx: 6 is not in 0\.\.5",
        ),
        (
            (QKV, "qkv_split_rope_kvcache_bf16"),
            {"cache_offset": 6},
            r"cache_offset: 6 \+ 3 positions in 8",
        ),
        ((QKV, "qkv_split_rope_kvcache_bf16"), {"rope": random(2, D)}, "rope: 2 rows"),
        ((QKV, "qkv_split_bias_rope_bf16"), {"kv_heads": 3}, "kv_heads: 3 for 4"),
        ((QKV, "qkv_split_bias_rope_bf16"), {"head_dim": D * 2}, "packed_qkv: axis 2"),
        ((QKV, "qkv_split_bias_rope_bf16"), {"cos": random(B, S, 16)}, "cos: 16 values"),
        (
            (QKV, "qkv_split_per_head_norm_rope_bf16"),
            {"packed_qkv": random(B, S, WIDTH)},
            "packed_qkv: axis 2 is 512, not 1024",
        ),
        (
            (QKV, "qkv_split_bias_norm_rope_v_bf16"),
            {"rope_seq_len": None, "freqs_re": random(2, 32).float()},
            "freqs_im: axis 0",
        ),
        ((QKV, "qkv_split_bias_norm_rope_v_bf16"), {"rope_seq_len": S + 1}, "rope_seq_len: 4"),
        ((CONV, "causal_conv1d_update_bf16"), {"w": random(D, 9)}, "w: 9 taps"),
        ((FA2, "forward_static"), {"causal": True}, "causal: on torch.bfloat16 heads of 64"),
        ((FA2, "forward_static"), {"q": random(B, S, 3, D)}, "out: axis 2|k: 2 heads for 3"),
        ((FA2, "forward_static"), {"softmax_scale": 0.0}, "softmax_scale: 0.0"),
        ((FA2, "forward_static"), {"q": random(B, S, HQ, 2 * D)[..., ::2]}, "q: last axis"),
        (
            (FA2, "forward_static"),
            {"q": random(B, S, HQ, D + 4)[..., :D]},
            "q: stride 68 of axis 2",
        ),
        (
            (FA2, "forward_seqused_static"),
            {"seqused_k": torch.tensor([0, 8], dtype=torch.int32)},
            r"seqused_k: 0\.\.8 is not in 1\.\.7",
        ),
        ((FA4, "forward_static"), {"causal": True}, "causal: 3 queries and 7 keys"),
        ((MHA, "forward_static"), {"k": random(7, 2, D)}, "k: axis 1 is 2, not 4"),
        ((KV8, "xqa_bf16_fp8kv"), {"q": random(2, 12, 128)}, "q: 12/8 heads"),
        ((KV8, "xqa_bf16_fp8kv"), {"q": random(2, 2, 16, 128)}, "q: a batch"),
        ((KV8, "xqa_bf16_fp8kv"), {"max_seq_len": 39}, r"seq_lens: 40 is not in 2\.\.39"),
        (
            (KV8, "xqa_bf16_fp8kv"),
            {"page_table": torch.tensor([2, 3], dtype=torch.int32)},
            "page_table: a page",
        ),
        ((CROSS, "fp8_gqa_cross_attention_bf16"), {"query": codes(B, S, 3, D)}, "key: 2 heads"),
        (
            (GDA, "lin_split_qkv_broadcast_bf16"),
            {"conv_out": random(2, 8192)},
            "conv_out: axis 1 is 8192, not 10240",
        ),
        ((GDA, "gdn_gating_bf16"), gates(32), "a: 32 heads, not 48"),
    ],
    ids=lambda one: one[1] if isinstance(one, tuple) else "",
)
def test_a_call_out_of_range_is_told(key: Key, change: Args, told: str) -> None:
    with pytest.raises(RuntimeError, match=told):
        call(key, **change)


def test_fp16_heads_are_attended_to_without_a_causal_mask() -> None:
    module = staging.load(FA2)
    q = random(1, 4, 2, 128).half()
    out, lse = module.allocate_outputs(q)
    close(module.forward_static(q, q, q, out=out, softmax_lse=lse), attention(q, q, q))
    with pytest.raises(RuntimeError, match="causal: on torch.float16"):
        module.forward_static(q, q, q, out=out, softmax_lse=lse, causal=True)


@pytest.mark.parametrize(
    ("package", "entry", "args"),
    [
        (ALN, "layer_norm_no_affine_quant_nvfp4_swizzled_bf16", {"x": random(M, D)}),
        (CROSS, "fp8_gqa_cross_attention_bf16", cross(staging.load(CROSS))),
    ],
    ids=["norm", "attention"],
)
def test_another_architecture_is_refused(
    package: str, entry: str, args: Args, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = staging.load(package)
    monkeypatch.setattr(module, "ARCH", "9.0")
    with pytest.raises(RuntimeError, match=rf"{entry}: device: sm 9\.0; runs on"):
        getattr(module, entry)(**args)
