"""Whether a product of matrices ran, seen from what torch dispatches."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional as nnf

from frtspec.runtime.observation.products import Products

X = torch.randn(2, 3, 4)
W = torch.randn(4, 4)
KERNEL = torch.randn(5, 3, 2)


@pytest.mark.parametrize(
    ("run", "seen"),
    [
        pytest.param(lambda: X @ W, True, id="matmul"),
        pytest.param(lambda: X @ X.mT, True, id="batched"),
        pytest.param(lambda: X[0, 0] @ X[0, 1], True, id="dot"),
        pytest.param(lambda: nnf.linear(X, W, W[0]), True, id="linear"),
        pytest.param(lambda: torch.einsum("abc,cd->abd", X, W), True, id="einsum"),
        pytest.param(lambda: nnf.conv1d(X, KERNEL), True, id="conv"),
        pytest.param(lambda: (X * W[0]).sum(-1).softmax(-1), False, id="elementwise and sums"),
        pytest.param(lambda: nnf.layer_norm(X, (4,), W[0]), False, id="norm"),
    ],
)
def test_products_are_told_from_everything_else(run: Callable[[], Tensor], seen: bool) -> None:
    with Products() as products:
        inside = run()
    assert products.seen is seen
    assert torch.equal(inside, run()), "watching changes nothing"


def test_only_what_runs_inside_counts() -> None:
    with Products() as products:
        _ = X + 1
    _ = X @ W
    assert not products.seen
