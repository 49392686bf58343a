"""Whole blocks: found by what they compute around the host's parts; what only looks so is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as nnf

from frtspec.live.scan import ScanResult, scan
from frtspec.live.scan.found import LeftOut

D, F, ROWS = 16, 40, 5


class Attention(nn.Module):
    """One head; keys and values of ``seen`` where it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.to_q, self.to_k, self.to_v, self.out = (nn.Linear(D, D) for _ in range(4))

    def forward(self, x: Tensor, seen: Tensor | None = None) -> Tensor:
        seen = x if seen is None else seen
        mixed = nnf.scaled_dot_product_attention(self.to_q(x), self.to_k(seen), self.to_v(seen))
        return self.out(mixed)


class Block(nn.Module):
    """What Wan's block computes, with one thing changed by a subclass."""

    order = (0, 1, 2, 3, 4, 5)
    table = True

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = self.norms()
        self.own, self.cross, self.norm = Attention(), Attention(), nn.LayerNorm(D)
        self.up, self.act, self.down = nn.Linear(D, F), self.activation(), nn.Linear(F, D)
        if self.table:
            self.steps = nn.Parameter(torch.randn(1, 6, D))

    def norms(self) -> tuple[nn.Module, nn.Module]:
        return tuple(nn.LayerNorm(D, eps=1e-6, elementwise_affine=False) for _ in range(2))  # type: ignore[return-value]

    def activation(self) -> nn.Module:
        return nn.GELU(approximate="tanh")

    def forward(self, x: Tensor, text: Tensor, temb: Tensor) -> Tensor:
        table = self.steps.unsqueeze(0) + temb if self.table else temb
        shift, scale, gate, shift2, scale2, gate2 = (table[:, :, at] for at in self.order)
        x = x + self.own(self.before(x) * (1 + scale) + shift) * gate
        x = self.crossed(x, text)
        return x + self.down(self.act(self.up(self.after(x) * (1 + scale2) + shift2))) * gate2

    def crossed(self, x: Tensor, text: Tensor) -> Tensor:
        return x + self.cross(self.norm(x), text)


class OtherNorm(Block):
    def norms(self) -> tuple[nn.Module, nn.Module]:
        return super().norms()[0], nn.RMSNorm(D)


class OtherEps(Block):
    def norms(self) -> tuple[nn.Module, nn.Module]:
        return super().norms()[0], nn.LayerNorm(D, eps=1e-2, elementwise_affine=False)


class OtherOrder(Block):
    order = (1, 0, 2, 3, 4, 5)


class OtherEnd(Block):
    order = (0, 1, 2, 3, 5, 4)


class NoTable(Block):
    table = False


class OtherActivation(Block):
    def activation(self) -> nn.Module:
        return nn.GELU()


class NoResidual(Block):
    def crossed(self, x: Tensor, text: Tensor) -> Tensor:
        return self.cross(self.norm(x), text)


class Host(nn.Module):
    def __init__(self, make: Callable[[], nn.Module]) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([make() for _ in range(2)])

    def forward(self, x: Tensor, text: Tensor, temb: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x, text, temb)
        return x


def scanned(
    make: Callable[[], nn.Module], *, table: tuple[int, ...] = (2, ROWS, 6, D)
) -> ScanResult:
    torch.manual_seed(0)
    model = Host(make).eval()
    given = torch.randn(2, ROWS, D), torch.randn(2, 3, D), torch.randn(table)
    return scan(model, lambda: model(*given))


def blocks(found: ScanResult) -> list[Any]:
    return [seat for seat in found.seats if seat.form == "block"]


def left(found: ScanResult) -> LeftOut:
    return next(row for row in found.left_out if row.path == "blocks.0")


def test_a_block_is_found_beside_the_seats_on_its_parts() -> None:
    found = scanned(Block)
    seats = blocks(found)
    assert [seat.path for seat in seats] == ["blocks.0", "blocks.1"]
    slots = {slot: weight.path for slot, weight in seats[1].slots.items()}
    assert slots["w_q"] == "blocks.1.own.to_q.weight"
    assert slots["w_v"] == "blocks.1.own.to_v.weight"
    assert slots["b_o"] == "blocks.1.own.out.bias"
    assert slots["w_up"] == "blocks.1.up.weight"
    assert seats[0].params["eps"] == 1e-6
    assert seats[0].boundary.inputs["table"].arg == "temb"
    assert "form block" in found.binding and "squeeze(steps)" in found.binding
    parts = {seat.path for seat in found.seats if seat.path.startswith("blocks.0.")}
    assert {"blocks.0.own", "blocks.0.own.out", "blocks.0.up", "blocks.0.down"} <= parts


@pytest.mark.parametrize(
    ("make", "code", "says"),
    [
        (OtherNorm, "no_pattern", "calls no layer_norm that could be `after`"),
        (OtherEps, "disagrees", "2 different eps"),
        (OtherOrder, "disagrees", "at `attn_in`"),
        (OtherEnd, "disagrees", "at `ffn_in`"),
        (OtherActivation, "disagrees", "at `ffn_hid`"),
        (NoResidual, "disagrees", "at `ffn_in`"),
        (NoTable, "no_pattern", "no parameter of its own for steps"),
    ],
)
def test_a_block_that_computes_something_else_is_left_out(
    make: Callable[[], nn.Module], code: str, says: str
) -> None:
    found = scanned(make)
    assert not blocks(found)
    reason = left(found)
    assert reason.code == code and says in reason.reason, reason


def test_a_table_with_one_row_a_batch_is_another_form() -> None:
    class Batched(Block):
        def forward(self, x: Tensor, text: Tensor, temb: Tensor) -> Tensor:
            return super().forward(x, text, temb if temb.dim() == 4 else temb.unsqueeze(1))

    found = scanned(Batched, table=(2, 6, D))
    assert not blocks(found)
    assert "[2, 6, 16] here" in left(found).reason


def test_a_block_behind_an_adapter_is_left_out() -> None:
    class Adapted(nn.Module):
        def __init__(self, base: nn.Linear) -> None:
            super().__init__()
            self.base_layer, self.lora = base, nn.Linear(D, D, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.base_layer(x) + self.lora(x)

    def adapted() -> nn.Module:
        block = Block()
        block.own.to_q = Adapted(block.own.to_q)  # type: ignore[assignment]
        return block

    found = scanned(adapted)
    assert not blocks(found)
    assert left(found).code == "adapter"
