"""Random small hosts: a seat is never found whose reference disagrees with its module."""

from __future__ import annotations

from typing import Any

import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn import functional as nnf

from frtspec.live.scan import FoundSeat, scan
from frtspec.runtime.hosts.host import seat_weights

ACTIVATIONS: dict[str, Any] = {
    "silu": nn.SiLU(),
    "gelu": nn.GELU(),
    "gelu_tanh": nn.GELU(approximate="tanh"),
    "relu": nn.ReLU(),
    "hardswish": nn.Hardswish(),
    "tanh": nn.Tanh(),
    "function": nnf.silu,
}


class Mlp(nn.Module):
    """Two or three projections, an activation, and one way to join them."""

    def __init__(self, dim: int, hidden: int, act: str, bias: tuple[bool, ...], join: str) -> None:
        super().__init__()
        self.a = nn.Linear(dim, hidden, bias=bias[0])
        self.b = nn.Linear(dim, hidden, bias=bias[1]) if join != "plain" else None
        self.c = nn.Linear(hidden, dim, bias=bias[2])
        self.act = ACTIVATIONS[act]
        self.join = join

    def forward(self, x: Tensor) -> Tensor:
        h = self.act(self.a(x))
        if self.b is not None:
            other = self.b(x)
            h = {"times": h * other, "plus": h + other, "late": self.act(h * other)}[self.join]
        return self.c(h)


class Norm(nn.Module):
    """A mean square norm, direct or offset, with a mistake now and then."""

    def __init__(self, dim: int, mode: str) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(dim))
        self.eps = 1e-5
        self.mode = mode

    def forward(self, x: Tensor) -> Tensor:
        y = x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + self.eps)
        w = self.weight.float()
        if self.mode == "offset":
            return (y * (1 + w)).to(x.dtype)
        if self.mode == "direct":
            return (y * w).to(x.dtype)
        return (y * w.square()).to(x.dtype)


class Block(nn.Module):
    def __init__(self, norm: nn.Module, mlp: nn.Module, residual: bool) -> None:
        super().__init__()
        self.norm, self.mlp, self.residual = norm, mlp, residual

    def forward(self, x: Tensor) -> Tensor:
        y = self.mlp(self.norm(x))
        return x + y if self.residual else y


class Host(nn.Module):
    def __init__(self, dim: int, blocks: list[nn.Module]) -> None:
        super().__init__()
        self.first = nn.Linear(dim, dim)
        self.blocks = nn.ModuleList(blocks)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(x)
        for block in self.blocks:
            x = block(x)
        return x


@st.composite
def hosts(draw: st.DrawFn) -> Host:
    dim = draw(st.sampled_from([3, 7, 8, 12]))
    torch.manual_seed(draw(st.integers(0, 2**16)))
    made: list[nn.Module] = []
    for _ in range(draw(st.integers(1, 3))):
        hidden = draw(st.sampled_from([dim, 5, 16]))
        mlp = Mlp(
            dim,
            hidden,
            draw(st.sampled_from(sorted(ACTIVATIONS))),
            draw(st.tuples(*[st.booleans()] * 3)),
            draw(st.sampled_from(["plain", "times", "plus", "late"])),
        )
        kind = draw(st.sampled_from(["layer", "bare", "direct", "offset", "square"]))
        norm: nn.Module = (
            nn.LayerNorm(dim, elementwise_affine=kind == "layer")
            if kind in ("layer", "bare")
            else Norm(dim, kind)
        )
        made.append(Block(norm, mlp, draw(st.booleans())))
    if draw(st.booleans()):
        made.append(made[0])
    return Host(dim, made).eval()


@given(host=hosts(), run=st.booleans(), rows=st.integers(1, 4))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_seat_disagrees_with_its_module(host: Host, run: bool, rows: int) -> None:
    x = torch.randn(2, rows, host.first.in_features)
    found = scan(host, (lambda: host(x)) if run else None)
    for seat in found.seats:
        agrees(host, seat)
    held = {path for seat in found.seats for path in seat.claims}
    reasons = found.reasons()
    for path, module in host.named_modules():
        if isinstance(module, nn.Linear) and f"{path}.weight" not in held:
            assert path in reasons


@torch.no_grad()
def agrees(host: Host, found: FoundSeat) -> None:
    """The seat's reference with the host's weights, beside its modules, on random input."""
    seat = found.seat("seat")
    slots = seat_weights(host, seat)
    modules = [host.get_submodule(path) for path in found.modules()]
    width = found.dims.get("D", found.dims.get("K", 0))
    x = torch.randn(3, 4, width) * 2
    theirs = [module(x) for module in modules]
    if found.seam is not None:
        seam = found.structure.seams[found.seam]
        variants = {axis: found.variants[axis] for axis in seam.variants}
        mine = [seam.call(x, **{n: slots[n] for n in seam.slots if n in slots}, **variants)]
    else:
        result = found.structure.reference(x, **slots, **found.variants, **found.params)
        mine = [result] if isinstance(result, Tensor) else list(result)
    for one, other in zip(mine, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=2e-4, atol=2e-5)
