"""Library ops that stand for several steps, against the steps."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from frtspec.runtime import numerics, ops

QUICK = settings(deadline=None, max_examples=25)
MASKS = ("none", "bias", "seen", "causal")


def stepwise(q: Tensor, k: Tensor, v: Tensor, scale: float, mask: str, given: Tensor) -> Tensor:
    groups = q.shape[1] // k.shape[1]
    k, v = (t.repeat_interleave(groups, dim=1) for t in (k, v))
    scores = q @ k.mT * scale
    match mask:
        case "bias":
            scores = scores + given
        case "seen":
            scores = scores + torch.log(given.float())
        case "causal":
            scores = ops.causal_mask(scores)
    return torch.softmax(scores, dim=-1) @ v


@QUICK
@given(
    st.integers(1, 2),
    st.sampled_from([(2, 2), (4, 2), (6, 1)]),
    st.integers(1, 9),
    st.integers(0, 9),
    st.sampled_from(MASKS),
    st.sampled_from([0.125, 1.0]),
    st.integers(0, 2**31),
)
def test_attention_is_its_steps(
    batch: int, heads: tuple[int, int], fresh: int, past: int, mask: str, scale: float, seed: int
) -> None:
    torch.manual_seed(seed)
    q = torch.randn(batch, heads[0], fresh, 16)
    k, v = (torch.randn(batch, heads[1], fresh + past, 16) for _ in range(2))
    mask_given = torch.randn(batch, 1, fresh, fresh + past)
    named: dict[str, Tensor] = {}
    if mask == "bias":
        mask_given[..., 1:].masked_fill_(torch.rand_like(mask_given[..., 1:]) < 0.3, -3.4e38)
        named = {"bias": mask_given}
    elif mask == "seen":
        mask_given = mask_given > 0
        mask_given[..., 0] = True
        named = {"seen": mask_given}
    found = numerics.attention(q, k, v, scale=scale, causal=mask == "causal", **named)
    wanted = stepwise(q, k, v, scale, mask, mask_given)
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_given_mask_takes_the_place_of_the_causal_one() -> None:
    q, k, v = (torch.randn(1, 2, 4, 8) for _ in range(3))
    every = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    masked = numerics.attention(q, k, v, seen=every, causal=True)
    torch.testing.assert_close(masked, numerics.attention(q, k, v))


def test_a_float32_minimum_stays_finite_in_bfloat16() -> None:
    """A row that sees nothing is the mean of all values, as in float32, and no NaN."""
    q, k, v = (torch.randn(1, 1, 3, 8).bfloat16() for _ in range(3))
    bias = torch.full((1, 1, 3, 3), torch.finfo(torch.float32).min)
    found = numerics.attention(q, k, v, bias=bias)
    torch.testing.assert_close(found, v.mean(2, keepdim=True).expand_as(v), atol=2e-2, rtol=0)


# ---------------------------------------------------------------- the delta rule


def one_by_one(
    q: Tensor, k: Tensor, v: Tensor, log_decay: Tensor, strength: Tensor, state: Tensor
) -> tuple[Tensor, Tensor]:
    out = []
    for t in range(q.shape[1]):
        kept = state * log_decay[:, t].exp()[..., None, None]
        recalled = torch.einsum("bhkv,bhk->bhv", kept, k[:, t])
        delta = (v[:, t] - recalled) * strength[:, t, :, None]
        state = kept + torch.einsum("bhk,bhv->bhkv", k[:, t], delta)
        out.append(torch.einsum("bhkv,bhk->bhv", state, q[:, t]))
    return torch.stack(out, 1), state


@QUICK
@given(
    st.sampled_from([1, 2, 63, 64, 65, 130]),
    st.sampled_from([0.01, 1.0, 40.0]),
    st.integers(0, 2**31),
)
def test_chunks_of_the_delta_rule_are_its_steps(steps: int, decay: float, seed: int) -> None:
    torch.manual_seed(seed)
    q, k = (torch.nn.functional.normalize(torch.randn(2, steps, 3, 8), dim=-1) for _ in range(2))
    v, state = torch.randn(2, steps, 3, 4), torch.randn(2, 3, 8, 4)
    log_decay = -decay * torch.rand(2, steps, 3)
    log_decay[:, ::5] *= 1e-3  # beside strong decays, weak ones have to keep their digits
    strength = torch.rand(2, steps, 3)
    found = numerics.gated_delta(q, k, v, log_decay, strength, state)
    for ours, wanted in zip(found, one_by_one(q, k, v, log_decay, strength, state), strict=True):
        torch.testing.assert_close(ours, wanted, rtol=1e-4, atol=1e-5)


def test_a_step_that_forgets_everything_is_no_nan() -> None:
    q, k, v = torch.randn(1, 4, 1, 8), torch.randn(1, 4, 1, 8), torch.randn(1, 4, 1, 4)
    log_decay = torch.tensor([[[0.0], [float("-inf")], [0.0], [-1.0]]])
    rest = (q, k, v, log_decay, torch.rand(1, 4, 1) / 4, torch.randn(1, 1, 8, 4))
    for ours, wanted in zip(numerics.gated_delta(*rest), one_by_one(*rest), strict=True):
        torch.testing.assert_close(ours, wanted, rtol=1e-4, atol=1e-5)


def test_no_step_leaves_the_state() -> None:
    state = torch.randn(1, 2, 8, 4)
    none = (torch.zeros(1, 0, 2, 8), torch.zeros(1, 0, 2, 8), torch.zeros(1, 0, 2, 4))
    read, after = numerics.gated_delta(*none, *(torch.zeros(1, 0, 2) for _ in range(2)), state)
    assert read.shape == (1, 0, 2, 4) and torch.equal(after, state)


# ---------------------------------------------------------------- rotation


@pytest.mark.parametrize("name", ["rope_half", "rope_interleaved"])
@pytest.mark.parametrize("rotary", [8, 16])
@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("heads", [0, -2])
def test_rotation_by_addcmul(name: str, rotary: int, wide: bool, heads: int) -> None:
    x = torch.randn(2, 5, 3, 16) if heads else torch.randn(2, 5, 16)
    cos, sin = (torch.randn(2, 5, rotary if wide else rotary // 2) for _ in range(2))
    found, wanted = (
        getattr(of, name)(x, cos, sin, rotary=rotary, heads=heads) for of in (numerics, ops)
    )
    torch.testing.assert_close(found, wanted, rtol=1e-6, atol=1e-6)
