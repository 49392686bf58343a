"""What an impl and its rungs need of a seat: sizes that groups divide, variants served."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from frtspec.dims import dims, divides
from frtspec.runtime.eligibility import eligible
from frtspec.runtime.errors import Refusal
from frtspec.runtime.spec import Need, Route, RungSpec, SchemeSpec
from tests.runtime.bind.support import bind
from tests.runtime.hosts_small import FP8_STATIC, FfnFp8Static, tiny_decoder

(D,) = dims("D")


def scheme_of(**changes: Any) -> SchemeSpec:
    """Static FP8 with an impl of the MLP whose facts differ."""
    impl = type("Other", (FfnFp8Static,), {"SPEC": replace(FfnFp8Static.SPEC, **changes)})
    route = FP8_STATIC.route("decoder_ffn", "mlp")
    return replace(FP8_STATIC, routes=(Route(route.structure, route.seam, route.stats, impl),))


def test_a_size_that_breaks_a_need_is_refused_with_dim_and_pack() -> None:
    needs = (Need(divides(16, D), "pack down per block 16"), Need(divides(64, D), "pack gate_up"))
    with pytest.raises(Refusal) as caught:
        bind(tiny_decoder(), ["ffn[0]"], scheme=scheme_of(needs=needs))
    refusal = caught.value
    assert (refusal.code, refusal.seat) == ("impl.dims", "ffn[0]")
    assert "needs D % 64 == 0 (pack gate_up); D = 32" in refusal.what


def test_needs_that_hold_change_nothing() -> None:
    needs = (Need(divides(16, D), "pack down per block 16"), Need(divides(4, D)))
    (bound,) = bind(tiny_decoder(), ["ffn[0]"], scheme=scheme_of(needs=needs))
    assert bound.rung.kind == "emulate"


def test_a_rung_for_other_variants_is_passed_over() -> None:
    rungs = (
        RungSpec("torch", run="run_torch", only={"activation": ("gelu",)}),
        RungSpec("emulate", run="run_emulate", only={"activation": ("silu",)}),
    )
    (bound,) = bind(
        tiny_decoder(), ["ffn[0]"], scheme=scheme_of(rungs=rungs), rungs=("torch", "emulate")
    )
    assert bound.rung.kind == "emulate"
    first = bound.trail[0]
    assert first.code == "rung.variant"
    assert "serves activation = gelu, and this seat has silu" in first.reason


def test_a_rung_whose_kernel_is_not_handed_an_input_is_for_calls_without_it() -> None:
    rung = RungSpec("hub", run="run_hub", package="org/name", version=1, without=("mask", "bias"))
    eligible.check_given(rung, {"q", "k"})
    eligible.check_given(replace(rung, without=()), {"q", "mask"})
    with pytest.raises(Refusal) as caught:
        eligible.check_given(rung, {"q", "k", "mask"})
    assert caught.value.code == "rung.input"
    assert caught.value.what == "serves calls without mask, and calls of this seat have it"
    assert caught.value.fix
