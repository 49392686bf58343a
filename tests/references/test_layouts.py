"""How a host stores a weight: [in, out], [out, in], or a convolution's, square ones included.

References take `in_out` everywhere. A layout is stated in the binding, never guessed from
sizes, and a square matrix the wrong way round is found by what it computes.
"""

from __future__ import annotations

import pytest
import torch
from flashrt_gen.structures import linear_proj_v1, patch_projection_v1, vision_ffn_v3
from hypothesis import given
from hypothesis import strategies as st
from reference_kit import SLOW_BOX, same, seeds
from torch import Tensor, nn
from transformers.pytorch_utils import Conv1D

from frtspec.diag.source import SourceFile
from frtspec.dims import DimError
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import host
from frtspec.runtime.spec import Seat, StructureSpec, Weight
from frtspec.sema import analyse
from frtspec.syntax.parse import parse

SIZES = st.integers(1, 32)


def read(model: nn.Module, spec: StructureSpec, **slots: Weight) -> dict[str, Tensor]:
    """The weights of a seat on a model, as its reference takes them."""
    variants = {axis: values[-1] for axis, values in spec.variants.items()}
    seat = Seat("seat", spec, None, "proj", "swap", variants, {}, {}, slots, {})
    return {name: v for name, v in host.seat_weights(model, seat).items() if isinstance(v, Tensor)}


def projected(x: Tensor, weights: dict[str, Tensor]) -> Tensor:
    return linear_proj_v1.reference(x, **weights, bias="add", epilogue="none")


@SLOW_BOX
@given(k=SIZES, n=SIZES, square=st.booleans(), seed=seeds)
def test_a_linear_is_out_in_and_a_conv1d_of_gpt_is_in_out(
    k: int, n: int, square: bool, seed: int
) -> None:
    torch.manual_seed(seed)
    n = k if square else n
    linear, conv1d = nn.Linear(k, n), Conv1D(n, k)
    nn.init.normal_(conv1d.bias)
    x = torch.randn(3, k)
    for proj, layout in ((linear, "out_in"), (conv1d, "in_out")):
        model = nn.ModuleDict({"proj": proj})
        weights = read(
            model, linear_proj_v1.SPEC, w=Weight("proj.weight", layout), b=Weight("proj.bias")
        )
        same(projected(x, weights), proj(x).detach())


@SLOW_BOX
@given(
    frames=st.integers(1, 3), side=st.integers(1, 5), n=SIZES, patches=st.integers(1, 6), seed=seeds
)
def test_a_convolution_over_whole_patches_is_flattened(
    frames: int, side: int, n: int, patches: int, seed: int
) -> None:
    torch.manual_seed(seed)
    conv = nn.Conv3d(3, n, (frames, side, side), stride=(frames, side, side))
    x = torch.randn(patches, 3, frames, side, side)
    weights = read(
        nn.ModuleDict({"proj": conv}),
        patch_projection_v1.SPEC,
        w=Weight("proj.weight", "out_in", "flat"),
        b=Weight("proj.bias"),
    )
    ours = patch_projection_v1.reference(x.flatten(1), **weights, bias="add")
    torch.testing.assert_close(ours, conv(x).detach().flatten(1), rtol=1e-5, atol=1e-5)


def test_the_wrong_layout_of_a_square_weight_shows_in_the_result() -> None:
    torch.manual_seed(0)
    linear = nn.Linear(16, 16)
    x = torch.randn(4, 16)
    model = nn.ModuleDict({"proj": linear})
    slots = {"b": Weight("proj.bias")}
    wrong = read(model, linear_proj_v1.SPEC, w=Weight("proj.weight", "in_out"), **slots)
    assert float((projected(x, wrong) - linear(x)).abs().max()) > 0.1


def test_the_wrong_layout_of_any_other_weight_does_not_fit() -> None:
    model = nn.ModuleDict({"proj": nn.Linear(6, 10)})
    slots = {"b": Weight("proj.bias")}
    with pytest.raises((Refusal, DimError), match="10|6"):
        read(model, linear_proj_v1.SPEC, w=Weight("proj.weight", "in_out"), **slots)


def test_both_products_of_a_square_mlp_keep_their_sides() -> None:
    """D == F: each weight is square, and each is read the way it is stored."""
    torch.manual_seed(1)
    fc1, fc2, x = nn.Linear(8, 8), nn.Linear(8, 8), torch.randn(5, 8)
    ours = vision_ffn_v3.reference(
        x,
        w_fc1=fc1.weight.T,
        b_fc1=fc1.bias,
        w_fc2=fc2.weight.T,
        b_fc2=fc2.bias,
        activation="gelu_erf",
        norm_affine="identity",
        bias="add",
    )
    normed = nn.functional.layer_norm(x, (8,), eps=1e-6)
    same(ours.detach(), (x + fc2(nn.functional.gelu(fc1(normed)))).detach())


def test_a_transposed_weight_is_a_type_error_even_where_it_would_fit() -> None:
    text = """frt 1
structure square version 1 {
  dim M, D, F
  in  x [rows M, D] : host
  out y [rows M, F] : host
  slot w [D, F]
  require { D == F }
  reference { yield y = x @ w.T }
}
"""
    source = SourceFile.from_text("square.frt", text)
    found = analyse([(source, parse(source).file)]).diagnostics
    assert [d.code for d in found] == ["FRT0303"]
