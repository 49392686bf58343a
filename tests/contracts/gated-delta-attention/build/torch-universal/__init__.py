# ruff: noqa: N999  (the folder is named as `kernels` has it)
"""Stands for flashrt/gated-delta-attention version 6: the gated delta rule, stepwise and in chunks.

    S = exp(g) S;  S = S + k (beta (v - S^T k))^T;  out = S^T (q / sqrt(128))

with a state [keys, values] for each head, in float32, rounded where it is stored. The ABI text
names the stages of the WY form without their arguments: they are not here.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as nnf

from ._shared.checking import BF16, F32, Check, Ops, has_rank

OPS = Ops(__name__)
HEAD = 128
KEY_HEADS = 16
VALUE_HEADS = (48, 32)
"""Value heads of the forms with 16 key heads; names without _h have the first only."""


def _l2(x: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6)


def _step(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, beta: Tensor, state: Tensor, norm: bool
) -> tuple[Tensor, Tensor]:
    """One step of [B, H, 128] on a state [B, H, 128, 128], all float32."""
    if norm:
        q, k = _l2(q), _l2(k)
    state = state * g.exp()[..., None, None]
    held = torch.einsum("bhkv,bhk->bhv", state, k)
    delta = (v - held) * beta[..., None]
    state = state + torch.einsum("bhk,bhv->bhkv", k, delta)
    return torch.einsum("bhkv,bhk->bhv", state, q * HEAD**-0.5), state


def _recurrent(name: str, g_dtype: torch.dtype, state_dtype: torch.dtype) -> object:
    def op(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        g: Tensor,
        beta: Tensor,
        state_in: Tensor,
        use_qk_l2norm: bool,
        state_out: Tensor,
        out: Tensor,
    ) -> None:
        check = Check(name)
        for operand, value in (("q", q), ("k", k), ("v", v)):
            check.tensor(operand, value, BF16, ("B", "H", HEAD))
        check.tensor("g", g, g_dtype, ("B", "H"))
        check.tensor("beta", beta, BF16, ("B", "H"))
        check.tensor("state_in", state_in, state_dtype, ("B", "H", HEAD, HEAD))
        check.tensor("state_out", state_out, state_dtype, ("B", "H", HEAD, HEAD))
        check.tensor("out", out, BF16, ("B", "H", HEAD))
        operands = (one.float() for one in (q, k, v, g, beta, state_in))
        found, state = _step(*operands, use_qk_l2norm)
        state_out.copy_(state)
        out.copy_(found)

    schema = (
        "Tensor q, Tensor k, Tensor v, Tensor g, Tensor beta, Tensor state_in, "
        "bool use_qk_l2norm, Tensor! state_out, Tensor! out"
    )
    registered = OPS.op(f"{name}({schema})")(op)

    def entry(
        q: Tensor,
        k: Tensor,
        v: Tensor,
        g: Tensor,
        beta: Tensor,
        state_in: Tensor,
        *,
        use_qk_l2norm: bool = True,
        state_out: Tensor | None = None,
        out: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        has_rank(name, 3, q=q)
        has_rank(name, 4, state_in=state_in)
        if state_out is None:
            state_out = torch.empty_like(state_in)
        if out is None:
            out = q.new_empty(q.shape, dtype=BF16)
        registered(q, k, v, g, beta, state_in, use_qk_l2norm, state_out, out)
        return out, state_out

    entry.__name__ = entry.__qualname__ = name
    entry.__doc__ = f"""One step: q, k, v bf16 [B, H, 128], beta bf16 [B, H].

    g         {g_dtype} [B, H], the log of the decay
    state_in  {state_dtype} [B, H, 128, 128]; state_out may be the same tensor

    Returns the output bf16 [B, H, 128] and state_out.
    """
    return entry


gated_delta_recurrent_inout_bf16 = _recurrent("gated_delta_recurrent_inout_bf16", BF16, BF16)
gated_delta_recurrent_inout_gf32_bf16 = _recurrent(
    "gated_delta_recurrent_inout_gf32_bf16", F32, BF16
)
gated_delta_recurrent_inout_gf32_sf32_bf16 = _recurrent(
    "gated_delta_recurrent_inout_gf32_sf32_bf16", F32, F32
)


def _value_heads(check: Check, width: int, heads: tuple[int, ...]) -> int:
    """The value heads of a row of the conv."""
    found = width // HEAD - 2 * KEY_HEADS
    known = width % HEAD == 0 and found in heads
    wanted = " or ".join(str((2 * KEY_HEADS + one) * HEAD) for one in heads)
    check.require("conv_out", known, f"axis 1 is {width}, not {wanted}")
    return found


def _split(conv_out: Tensor, broadcast: int) -> tuple[Tensor, Tensor, Tensor]:
    rows = KEY_HEADS * HEAD
    parts = (conv_out[:, :rows], conv_out[:, rows : 2 * rows], conv_out[:, 2 * rows :])
    q, k, v = (one.unflatten(1, (-1, HEAD)) for one in parts)
    if broadcast:
        q, k = (one.repeat_interleave(broadcast // KEY_HEADS, dim=1) for one in (q, k))
    return q, k, v


def _lin_split(name: str, heads: tuple[int, ...], broadcast: bool) -> object:
    def op(conv_out: Tensor, q_out: Tensor, k_out: Tensor, v_out: Tensor) -> None:
        check = Check(name)
        _, width = check.tensor("conv_out", conv_out, BF16, ("S", "width"))
        values = _value_heads(check, width, heads)
        keys = values if broadcast else KEY_HEADS
        for out, tensor, count in (("q", q_out, keys), ("k", k_out, keys), ("v", v_out, values)):
            check.tensor(f"{out}_out", tensor, BF16, ("S", count, HEAD))
        parts = _split(conv_out, values if broadcast else 0)
        for tensor, part in zip((q_out, k_out, v_out), parts, strict=True):
            tensor.copy_(part)

    schema = "Tensor conv_out, Tensor! q_out, Tensor! k_out, Tensor! v_out"
    registered = OPS.op(f"{name}({schema})")(op)

    def entry(
        conv_out: Tensor,
        q_out: Tensor | None = None,
        k_out: Tensor | None = None,
        v_out: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        has_rank(name, 2, conv_out=conv_out)
        steps, width = conv_out.shape
        values = max(width // HEAD - 2 * KEY_HEADS, 1)
        keys = values if broadcast else KEY_HEADS
        outs = (q_out, k_out, v_out)
        q, k, v = (
            conv_out.new_empty((steps, count, HEAD), dtype=BF16) if out is None else out
            for out, count in zip(outs, (keys, keys, values), strict=True)
        )
        registered(conv_out, q, k, v)
        return q, k, v

    entry.__name__ = entry.__qualname__ = name
    entry.__doc__ = """conv_out bf16 [S, width] as q, k, v bf16 [S, heads, 128]."""
    return entry


lin_split_qkv_broadcast_bf16 = _lin_split("lin_split_qkv_broadcast_bf16", VALUE_HEADS[:1], True)
lin_split_qkv_broadcast_h_bf16 = _lin_split("lin_split_qkv_broadcast_h_bf16", VALUE_HEADS, True)
lin_split_qkv_gqa_bf16 = _lin_split("lin_split_qkv_gqa_bf16", VALUE_HEADS[:1], False)


def _gates(a: Tensor, b: Tensor, neg_exp_a_log: Tensor, dt_bias: Tensor) -> tuple[Tensor, Tensor]:
    g = neg_exp_a_log.float() * nnf.softplus(a.float() + dt_bias.float())
    return g, b.float().sigmoid()


def _check_gates(
    check: Check, heads: tuple[int, ...], a: Tensor, b: Tensor, neg: Tensor, dt: Tensor
) -> None:
    _, found = check.tensor("a", a, BF16, ("S", "H"))
    wanted = " or ".join(str(one) for one in heads)
    check.require("a", found in heads, f"{found} heads, not {wanted}")
    check.tensor("b", b, BF16, ("S", "H"))
    check.tensor("neg_exp_A_log", neg, (F32, BF16), ("H",))
    check.tensor("dt_bias", dt, (F32, BF16), ("H",))


def _gating(name: str, heads: tuple[int, ...]) -> object:
    def op(
        a: Tensor,
        b: Tensor,
        neg_exp_A_log: Tensor,
        dt_bias: Tensor,
        g: Tensor,
        beta: Tensor,
    ) -> None:
        check = Check(name)
        _check_gates(check, heads, a, b, neg_exp_A_log, dt_bias)
        check.tensor("g", g, BF16, ("S", "H"))
        check.tensor("beta", beta, BF16, ("S", "H"))
        decay, strength = _gates(a, b, neg_exp_A_log, dt_bias)
        g.copy_(decay)
        beta.copy_(strength)

    schema = "Tensor a, Tensor b, Tensor neg_exp_A_log, Tensor dt_bias, Tensor! g, Tensor! beta"
    registered = OPS.op(f"{name}({schema})")(op)

    def entry(
        a: Tensor,
        b: Tensor,
        neg_exp_A_log: Tensor,
        dt_bias: Tensor,
        g: Tensor | None = None,
        beta: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        has_rank(name, 2, a=a, b=b)
        g = torch.empty_like(a) if g is None else g
        beta = torch.empty_like(b) if beta is None else beta
        registered(a, b, neg_exp_A_log, dt_bias, g, beta)
        return g, beta

    entry.__name__ = entry.__qualname__ = name
    entry.__doc__ = """The log of the decay and the write strength of a, b bf16 [S, H], bf16."""
    return entry


gdn_gating_bf16 = _gating("gdn_gating_bf16", VALUE_HEADS[:1])
gdn_gating_h_bf16 = _gating("gdn_gating_h_bf16", VALUE_HEADS)


def _chunk(name: str, heads: tuple[int, ...]) -> object:
    def op(
        conv_out: Tensor,
        a: Tensor,
        b: Tensor,
        neg_exp_A_log: Tensor,
        dt_bias: Tensor,
        state: Tensor,
        out: Tensor,
    ) -> None:
        check = Check(name)
        steps, width = check.tensor("conv_out", conv_out, BF16, ("S", "width"))
        values = _value_heads(check, width, heads)
        _check_gates(check, (values,), a, b, neg_exp_A_log, dt_bias)
        check.tensor("state", state, (F32, BF16), (values, HEAD, HEAD))
        check.tensor("out", out, BF16, ("S", values, HEAD))
        q, k, v = (one.float() for one in _split(conv_out, values))
        g, beta = _gates(a, b, neg_exp_A_log, dt_bias)
        held = state.float()[None]
        for at in range(steps):
            row = slice(at, at + 1)
            found, held = _step(q[row], k[row], v[row], g[row], beta[row], held, True)
            out[at] = found[0].bfloat16()
        state.copy_(held[0])

    schema = (
        "Tensor conv_out, Tensor a, Tensor b, Tensor neg_exp_A_log, Tensor dt_bias, "
        "Tensor! state, Tensor! out"
    )
    registered = OPS.op(f"{name}({schema})")(op)

    def entry(
        conv_out: Tensor,
        a: Tensor,
        b: Tensor,
        neg_exp_A_log: Tensor,
        dt_bias: Tensor,
        state: Tensor,
        out: Tensor | None = None,
    ) -> Tensor:
        has_rank(name, 2, conv_out=conv_out)
        has_rank(name, 3, state=state)
        if out is None:
            shape = (conv_out.shape[0], state.shape[0], HEAD)
            out = conv_out.new_empty(shape, dtype=BF16)
        registered(conv_out, a, b, neg_exp_A_log, dt_bias, state, out)
        return out

    entry.__name__ = entry.__qualname__ = name
    entry.__doc__ = """All steps of conv_out bf16 [S, width], state [H, 128, 128] in place: bf16."""
    return entry


gdn_chunk_from_conv_smem_bf16 = _chunk("gdn_chunk_from_conv_smem_bf16", VALUE_HEADS[:1])
gdn_chunk_from_conv_smem_h_bf16 = _chunk("gdn_chunk_from_conv_smem_h_bf16", VALUE_HEADS)
