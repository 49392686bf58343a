"""Norms of the references against torch's modules."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional as nnf

from frtspec.runtime import ops
from frtspec.runtime.errors import Refusal


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 40), st.sampled_from([1e-6, 1e-5, 1e-12]))
def test_layer_norm_equals_torchs(rows: int, width: int, eps: float) -> None:
    x = torch.randn(rows, width) * 3 + 1
    torch.testing.assert_close(ops.layer_norm(x, eps), nnf.layer_norm(x, (width,), eps=eps))


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 40), st.sampled_from([1e-6, 1e-5]))
def test_rms_norm_equals_torchs(rows: int, width: int, eps: float) -> None:
    x = torch.randn(rows, width) * 3 + 1
    torch.testing.assert_close(ops.rms_norm(x, eps), nnf.rms_norm(x, (width,), eps=eps))


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 40), st.booleans())
def test_native_layer_norm_is_torchs(rows: int, width: int, affine: bool) -> None:
    x, w, b = torch.randn(rows, width) * 3 + 1, torch.randn(width), torch.randn(width)
    given = (w, b) if affine else ()
    assert torch.equal(
        ops.native_layer_norm(x, 1e-6, *given), nnf.layer_norm(x, (width,), *given, eps=1e-6)
    )


@settings(deadline=None)
@given(st.integers(1, 5), st.integers(1, 40), st.booleans())
def test_native_rms_norm_is_torchs(rows: int, width: int, weighted: bool) -> None:
    x, w = torch.randn(rows, width) * 3 + 1, torch.randn(width)
    given = (w,) if weighted else ()
    assert torch.equal(
        ops.native_rms_norm(x, 1e-6, *given), nnf.rms_norm(x, (width,), *given, eps=1e-6)
    )


def test_spread_puts_entries_at_their_places() -> None:
    x, places = torch.tensor([[5.0, 7.0]]), torch.tensor([[2, 0]])
    assert torch.equal(ops.spread(x, places, 4), torch.tensor([[7.0, 0.0, 5.0, 0.0]]))


def test_l2norm_has_unit_length() -> None:
    x = torch.randn(4, 16)
    torch.testing.assert_close(ops.l2norm(x, 0.0).norm(dim=-1), torch.ones(4))


def test_a_zero_row_is_finite() -> None:
    for norm in (ops.rms_norm, ops.layer_norm, ops.l2norm):
        assert torch.equal(norm(torch.zeros(2, 8), 1e-6), torch.zeros(2, 8))


def test_an_unknown_variant_names_what_is_known() -> None:
    error = ops.unknown_variant(
        "decoder_ffn", "activation", "relu", {"activation": ("gelu", "silu")}
    )
    assert isinstance(error, Refusal)
    assert "relu" in str(error) and "gelu, silu" in str(error)
    with pytest.raises(Refusal):
        raise error
