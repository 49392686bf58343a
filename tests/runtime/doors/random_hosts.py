"""Small hosts drawn at random: norms, gated and plain MLPs, attention, biases, shared and tied
weights, odd sizes. Plain torch modules, as a person would write them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as nnf

VOCABULARY = 31


@dataclass(frozen=True)
class Shape:
    """What is drawn. ``share``: weights that two places hold: none, an MLP, a projection."""

    width: int
    inner: int
    heads: int
    layers: int
    norm: str
    mlp: str
    act: str
    bias: bool
    share: str
    tied: bool
    seed: int


SHAPES = st.builds(
    Shape,
    width=st.sampled_from([16, 24, 32, 48]) | st.sampled_from([12, 20, 36]),
    inner=st.sampled_from([15, 32, 33, 48, 71]),
    heads=st.sampled_from([1, 2, 4]),
    layers=st.integers(1, 2),
    norm=st.sampled_from(["layer", "rms", "plus_one", "none"]),
    mlp=st.sampled_from(["gated", "plain", "none"]),
    act=st.sampled_from(["silu", "gelu", "tanh_gelu", "relu"]),
    bias=st.booleans(),
    share=st.sampled_from(["none", "none", "mlp", "projection"]),
    tied=st.booleans(),
    seed=st.integers(0, 999),
)

ONE_OF_EACH = (
    Shape(24, 33, 2, 2, "plus_one", "gated", "tanh_gelu", True, "mlp", True, 1),
    Shape(20, 15, 4, 2, "layer", "plain", "gelu", False, "projection", False, 2),
)
"""Hosts that a few draws alone would leave out: each way to share weights, two layers deep,
and the values that a draw begins with last."""


class Rms(nn.Module):
    def __init__(self, width: int, plus: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(width) * 0.2 + (1 - plus))
        self.plus = plus

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * (self.weight + self.plus)


def norm(shape: Shape) -> nn.Module:
    match shape.norm:
        case "layer":
            return nn.LayerNorm(shape.width, bias=shape.bias)
        case "rms":
            return Rms(shape.width, 0.0)
        case "plus_one":
            return Rms(shape.width, 1.0)
    return nn.Identity()


def activation(shape: Shape) -> nn.Module:
    acts = {"silu": nn.SiLU(), "gelu": nn.GELU(), "relu": nn.ReLU()}
    return acts.get(shape.act, nn.GELU(approximate="tanh"))


class Gated(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.width, shape.inner, bias=shape.bias)
        self.up_proj = nn.Linear(shape.width, shape.inner, bias=shape.bias)
        self.down_proj = nn.Linear(shape.inner, shape.width, bias=shape.bias)
        self.act_fn = activation(shape)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Plain(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.fc1 = nn.Linear(shape.width, shape.inner, bias=shape.bias)
        self.act = activation(shape)
        self.fc2 = nn.Linear(shape.inner, shape.width, bias=shape.bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.act(self.fc1(x)))


class Attention(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, width = shape.heads, shape.width
        self.q_proj = nn.Linear(width, width, bias=shape.bias)
        self.k_proj = nn.Linear(width, width, bias=shape.bias)
        self.v_proj = nn.Linear(width, width, bias=shape.bias)
        self.o_proj = nn.Linear(width, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (
            p(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for p in (self.q_proj, self.k_proj, self.v_proj)
        )
        mixed = nnf.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(mixed.transpose(1, 2).flatten(-2))


class Layer(nn.Module):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.before, self.attn = norm(shape), Attention(shape)
        self.between = norm(shape)
        self.mlp = {"gated": Gated, "plain": Plain}.get(shape.mlp, lambda s: nn.Identity())(shape)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attn(self.before(x))
        return x + self.mlp(self.between(x))


class RandomHost(nn.Module):
    """token ids [B, S] -> values [B, S, vocabulary]"""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed = nn.Embedding(VOCABULARY, shape.width)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))
        self.head = nn.Linear(shape.width, VOCABULARY, bias=False)
        if shape.tied:
            self.head.weight = self.embed.weight
        first, last = self.layers[0], self.layers[-1]
        if shape.share == "mlp":
            last.mlp = first.mlp
        elif shape.share == "projection":
            last.attn.o_proj.weight = first.attn.q_proj.weight

    def forward(self, ids: Tensor) -> Tensor:
        x = self.embed(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


def made(shape: Shape) -> RandomHost:
    torch.manual_seed(shape.seed)
    return RandomHost(shape).eval().requires_grad_(False)


def batches(shape: Shape, count: int, *, offset: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(shape.seed + offset)
    return [torch.randint(0, VOCABULARY, (2, 6), generator=generator) for _ in range(count)]
