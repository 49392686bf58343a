"""Sizes that no kernel divides are decided on at bind; any number of rows is served."""

from __future__ import annotations

import warnings

import pytest
import torch
from flashrt_gen import get
from torch import Tensor, nn

from frtspec.runtime import FallbackWarning, NothingBoundWarning, Refusal


def linear(k: int, n: int, bias: bool) -> nn.Module:
    torch.manual_seed(0)
    return nn.Linear(k, n, bias=bias).eval().requires_grad_(False)


def inputs(k: int, rows: int = 8) -> list[Tensor]:
    generator = torch.Generator().manual_seed(1)
    return [torch.randn(rows, k, generator=generator) for _ in range(2)]


def bind(module: nn.Linear, rows: int = 8, **options) -> nn.Module:
    return get("linear_proj").bind(module, calibration=inputs(module.in_features, rows), **options)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("k", "n"), [(15, 48), (48, 15), (712, 64), (64, 767), (4304, 16)])
def test_an_odd_size_is_served_or_refused_at_bind_by_its_rule(k: int, n: int, bias: bool) -> None:
    module = linear(k, n, bias)
    wrong = [name for name, size in (("K", k), ("N", n)) if size % 16]
    if wrong:
        with pytest.warns(NothingBoundWarning), pytest.raises(Refusal) as caught:
            bind(module, scheme="fp8_static", rungs=("torch",))
        (name,) = wrong
        assert caught.value.code == "rung.none"
        (tried,) = (row.reason for row in caught.value.trail if row.what == "torch")
        assert tried == f"needs {name} % 16 == 0; {name} = {k if name == 'K' else n}"
    part = bind(module, scheme="fp8_static", rungs=("torch", "emulate"))
    assert part.certification.rung == ("emulate" if wrong else "torch")
    (x, _) = inputs(k)
    ours, theirs = part(x), module(x)
    assert ours.shape == theirs.shape
    assert torch.cosine_similarity(ours.flatten(), theirs.flatten(), dim=0) > 0.999
    assert part.ledger().fallbacks == 0


def test_a_size_that_blocks_of_weights_do_not_divide_is_named_with_the_block() -> None:
    with pytest.warns(NothingBoundWarning), pytest.raises(Refusal) as caught:
        bind(linear(712, 64, True), scheme="nvfp4_dynamic", rungs=("emulate",))
    assert caught.value.code.endswith("impl.dims")
    assert "K % 16 == 0 (pack weight per block 16); K = 712" in caught.value.what


@pytest.mark.parametrize("rung", ["torch", "emulate"])
def test_any_number_of_rows_after_a_calibration_on_512(rung: str) -> None:
    module = linear(64, 48, True)
    part = bind(module, 512, scheme="fp8_static", rungs=(rung,))
    generator = torch.Generator().manual_seed(2)
    every = torch.randn(8352, 64, generator=generator).clamp(-3, 3)
    whole = part(every)
    for rows in (1, 2, 7, 16, 127, 256, 257, 8352):
        x = every[:rows]
        held = x.clone()
        assert torch.equal(part(x), whole[:rows])  # a row knows nothing of the others
        assert torch.equal(part(x[None]), whole[None, :rows])
        assert torch.equal(x, held)
    assert torch.equal(part(every[:16].view(2, 2, 4, 64)), whole[:16].view(2, 2, 4, 48))
    assert torch.cosine_similarity(whole.flatten(), module(every).flatten(), dim=0) > 0.999
    assert part.ledger().fallbacks == 0


def test_many_channels_and_few_rows() -> None:
    part = bind(linear(9216, 32, False), 64, scheme="fp8_static", rungs=("torch",))
    generator = torch.Generator().manual_seed(2)
    every = torch.randn(257, 9216, generator=generator).clamp(-3, 3)
    whole = part(every)
    for rows in (1, 16, 256):
        assert torch.equal(part(every[:rows]), whole[:rows])


def test_no_rows_are_the_modules_own_and_told() -> None:
    module = linear(64, 48, True)
    part = bind(module, scheme="fp8_static", rungs=("torch",))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        assert part(torch.zeros(0, 64)).shape == (0, 48)
    assert part(inputs(64)[0]).shape == (8, 48)
