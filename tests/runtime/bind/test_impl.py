"""The base of impls: packs that own their memory, views on a rung that share it."""

from __future__ import annotations

import pytest
import torch

from frtspec.runtime import numerics
from frtspec.runtime.rungs.impl import BoundImpl
from tests.runtime.hosts_small import FfnFp8Static, LinearFp8Static, QkvFp8Static


def linear(**given: torch.Tensor) -> LinearFp8Static:
    return LinearFp8Static(w=torch.randn(32, 16), in_s=torch.tensor(0.01), **given)


def test_packs_are_buffers_that_no_state_dict_holds() -> None:
    impl = linear(b=torch.randn(16))
    assert impl.weight.dtype == torch.float8_e4m3fn and impl.weight.is_contiguous()
    assert impl.weight_scale.shape == (1,) and impl.in_s.shape == (1,)
    assert dict(impl.state_dict()) == {}
    assert impl.bytes() == 16 * 32 + 4 + 4 + 16 * 4


def test_packs_own_their_memory_and_carry_no_gradient() -> None:
    bias = torch.nn.Parameter(torch.randn(16))
    impl = linear(b=bias)
    assert impl.bias.data_ptr() != bias.data_ptr() and not impl.bias.requires_grad


def test_an_absent_weight_stays_absent() -> None:
    assert linear().bias is None


def test_a_view_on_a_rung_shares_the_packs() -> None:
    impl = linear()
    emulate = impl.on(LinearFp8Static.SPEC.rungs[1])
    assert emulate.weight is impl.weight and emulate.rung is not None and impl.rung is None
    x = torch.randn(3, 32)
    assert torch.equal(emulate.run(x), impl.run_emulate(x))
    assert torch.equal(emulate(x), emulate.run(x))


@pytest.mark.parametrize("per", ["tensor", "channel"])
def test_a_member_sees_its_own_rows_and_copies_nothing(per: str) -> None:
    weights = [torch.randn(32, width) for width in (32, 16, 16)]
    impl = QkvFp8Static(w=tuple(weights), in_s=torch.tensor(0.01))
    impl.pack("all", numerics.quantize_fp8(torch.cat([w.T for w in weights]), per=per))
    x = torch.randn(5, 32)
    for rung in QkvFp8Static.SPEC.rungs:
        whole = impl.on(rung).run(x)
        for position in range(3):
            (alone,) = impl.on(rung).member(position).run(x)
            torch.testing.assert_close(alone, whole[position])
    second = impl.member(1)
    assert second.all.shape == (16, 32) and second.all_rows == [16]
    assert second.all.untyped_storage().data_ptr() == impl.all.untyped_storage().data_ptr()
    assert impl.all.shape == (64, 32) and impl.all_rows == [32, 16, 16]


def test_an_impl_on_no_rung_says_so() -> None:
    with pytest.raises(RuntimeError, match="bound to no rung"):
        linear().run(torch.randn(3, 32))


def test_transposed_weights_are_packed_contiguous() -> None:
    class Raw(BoundImpl):
        def __init__(self) -> None:
            super().__init__()
            self.pack("w", torch.randn(4, 6).T)
            self.pack("q", numerics.quantize_fp8(torch.randn(4, 6).T, per="channel"))

    raw = Raw()
    assert raw.w.is_contiguous() and raw.q.is_contiguous() and raw.q_scale.shape == (6, 1)


def test_a_zero_row_leaves_the_other_rows_as_they_are() -> None:
    weights = {name: torch.randn(32, 64) for name in ("w_gate", "w_up")}
    impl = FfnFp8Static(
        **weights,
        w_down=torch.randn(64, 32),
        in_s=numerics.fp8_scale(4.0),
        hid_s=numerics.fp8_scale(100.0),
        activation="silu",
    )
    x = torch.randn(5, 32)
    x[2] = 0
    for run in (impl.run_emulate, impl.run_torch):
        out = run(x)
        assert torch.isfinite(out).all() and torch.equal(out[2], torch.zeros(32).to(out.dtype))
        assert torch.equal(out[[0, 1, 3, 4]], run(x[[0, 1, 3, 4]]))


@pytest.mark.parametrize("zero", ["w_gate", "w_up", "w_down", "in_s", "hid_s"])
def test_zero_weights_and_scales_give_zeros_and_no_nan(zero: str) -> None:
    given = {
        "w_gate": torch.randn(32, 64),
        "w_up": torch.randn(32, 64),
        "w_down": torch.randn(64, 32),
        "in_s": torch.tensor([0.01]),
        "hid_s": torch.tensor([0.1]),
    }
    given[zero] = torch.zeros_like(given[zero])
    impl = FfnFp8Static(**given, activation="silu")
    out = impl.run_emulate(torch.randn(5, 32))
    assert torch.equal(out, torch.zeros_like(out))
