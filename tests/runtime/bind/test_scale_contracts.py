"""Kernels that read their scales in another form than the plan made them in.

One that wants powers of two and rounds what it is given leaves the codes as they are: each block
is off by a factor of its own between 1 and 2, finite and plausible. One that takes a scale for
the whole tensor where rows have theirs is off by rows.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from frtspec.runtime import numerics
from frtspec.runtime.errors import Refusal
from frtspec.runtime.gating import gates
from tests.runtime import hosts_small as small
from tests.runtime.bind.test_ladder import ffn, no_hub, variant_of  # noqa: F401, a fixture
from tests.runtime.judge.test_gates import bound_ffn

BLOCK = 16


def power_of_two(scale: Tensor) -> Tensor:
    """The next one up, as a kernel with exponent scales stores it."""
    return torch.exp2(torch.ceil(torch.log2(scale)))


def by_blocks(y: Tensor, factors: Tensor) -> Tensor:
    """Columns of ``y`` off by a factor for each block of 16."""
    return y * factors.repeat_interleave(BLOCK)[: y.shape[-1]]


class Rounding(small.FfnFp8Static):
    """The arithmetic of ``run_torch`` with scales that a kernel read in its own way."""

    def run_exponent(self, x: Tensor) -> Tensor:
        scales = (self.in_s, self.hid_s)
        self.in_s, self.hid_s = map(power_of_two, scales)
        gate_up_scale, down_scale = self.gate_up_scale, self.down_scale
        x_q = numerics.to_fp8(x, scales[0])  # codes by the scale as it was, read by another
        both = numerics.scaled_mm(x_q, self.gate_up, self.in_s, gate_up_scale)
        self.in_s, self.hid_s = scales
        g, u = both.float().split(self.widths, dim=-1)
        act_q = numerics.to_fp8(self._act(g, u), self.hid_s)
        return numerics.scaled_mm(act_q, self.down, self.hid_s, down_scale)

    def run_weights(self, x: Tensor) -> Tensor:
        factor = float(power_of_two(self.down_scale) / self.down_scale)
        assert 1.05 < factor < 2  # else this shows nothing
        return self.run_torch(x) * factor

    def run_blocks(self, x: Tensor) -> Tensor:
        y = self.run_torch(x)
        return by_blocks(y, torch.linspace(1.0, 2.0, -(-y.shape[-1] // BLOCK)))


@pytest.mark.parametrize("run", ["weights", "blocks"])
def test_a_kernel_with_scales_of_another_form_is_not_admitted(run: str) -> None:
    rungs = (
        small.RungSpec("local", run=f"run_{run}"),
        small.RungSpec("torch", run="run_torch"),
        small.RungSpec("emulate", run="run_emulate"),
    )
    impl = type("Other", (Rounding,), {"SPEC": variant_of(rungs=rungs).SPEC})
    bound = ffn(impl)
    assert bound.rung.kind == "torch"
    assert bound.trail[0].code == "rung.values", bound.trail[0]
    with pytest.raises(Refusal) as caught:
        ffn(impl, rungs=("local",))
    assert caught.value.code == "rung.none" and "away from the emulation" in str(caught.value)


@pytest.mark.parametrize("factors", [(1.0, 2.0), (1.0, 1.1), (1.3, 1.0), (1.0, 1.0)])
def test_parity_catches_a_factor_of_some_blocks(factors: tuple[float, float]) -> None:
    """On the inputs that the seat really gets, with one block off and the other right."""
    model = small.tiny_decoder()
    bound, reference, captures = bound_ffn(model, small.seat_named(model, "ffn[0]"), "torch")
    right = bound.impl.run_torch
    bound.impl.run_torch = lambda x: by_blocks(right(x), torch.tensor(factors))
    found = gates.kernel_parity(bound, reference, captures)
    assert found.verdict == ("pass" if factors == (1.0, 1.0) else "fail"), found.reason


def test_parity_catches_a_scale_that_was_rounded_by_a_little() -> None:
    """6 percent: the probe at bind is coarser than that, the gate on real inputs is not."""
    model = small.tiny_decoder()
    bound, reference, captures = bound_ffn(model, small.seat_named(model, "ffn[0]"), "torch")
    off = float(power_of_two(bound.impl.in_s) / bound.impl.in_s)
    assert 1.01 < off < 1.1
    bound.impl.run_torch = lambda x: Rounding.run_exponent(bound.impl, x)
    found = gates.kernel_parity(bound, reference, captures)
    assert found.verdict == "fail" and "row_rel_l2" in found.reason
