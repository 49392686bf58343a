"""What looks like a structure and is none: left out, each with the reason that it has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as nnf
from torch.nn.utils import parametrize

from frtspec.live.scan import REASONS, ScanResult, scan

D, F = 16, 40


class Gated(nn.Module):
    def __init__(self, act: Any, bias: bool = False) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(D, F, bias=bias)
        self.up_proj = nn.Linear(D, F, bias=bias)
        self.down_proj = nn.Linear(F, D, bias=bias)
        self.act_fn = act

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.act_fn(self.gate_proj(x)) * self.up_proj(x))


class Plain(nn.Module):
    def __init__(self, act: Any, bias: bool = True) -> None:
        super().__init__()
        self.fc1 = nn.Linear(D, F, bias=bias)
        self.act = act
        self.fc2 = nn.Linear(F, D, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        return self.fc2(self.act(self.fc1(x)))


class Host(nn.Module):
    """A residual block around whatever is tried."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(D)
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return x + self.inner(self.norm(x))


class QuickGelu(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(1.702 * x)


def scanned(inner: nn.Module, *, run: bool = True) -> ScanResult:
    torch.manual_seed(0)
    host = Host(inner).eval()
    x = torch.randn(2, 5, D)
    found = scan(host, (lambda: host(x)) if run else None)
    assert all(row.code in REASONS and row.reason for row in found.left_out)
    return found


def seats(found: ScanResult) -> dict[str, str]:
    """Module -> what sits on it; of projections together each one."""
    return {path: seat.target for seat in found.seats for path in seat.modules()}


RUN = pytest.mark.parametrize("run", [True, False], ids=["run", "no run"])


# ---------------------------------------------------------------- activations

ACTIVATIONS: dict[str, Callable[[], Any]] = {
    "silu": nn.SiLU,
    "gelu_tanh": lambda: nn.GELU(approximate="tanh"),
    "gelu_erf": nn.GELU,
    "quick_gelu": QuickGelu,
    "hardswish": nn.Hardswish,
    "relu": nn.ReLU,
    "mish": nn.Mish,
    "a function": lambda: nnf.silu,
}


@RUN
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_activation_of_a_gated_mlp_is_told_exactly(name: str, run: bool) -> None:
    found = scanned(Gated(ACTIVATIONS[name]()), run=run)
    takes = {"silu": "silu", "a function": "silu", "gelu_tanh": "gelu"}
    if name in takes:
        (seat,) = [s for s in found.seats if s.path == "inner"]
        assert (seat.target, seat.variants["activation"]) == ("decoder_ffn.mlp", takes[name])
    else:
        assert "inner" not in seats(found)
        assert found.reasons()["inner"] == "activation"
        (row,) = [row for row in found.left_out if row.path == "inner"]
        assert name in row.reason


@RUN
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_the_activation_of_a_plain_mlp_is_told_exactly(name: str, run: bool) -> None:
    found = scanned(Plain(ACTIVATIONS[name]()), run=run)
    if name in ("gelu_tanh", "gelu_erf"):
        (seat,) = [s for s in found.seats if s.path == "inner"]
        assert (seat.target, seat.variants["activation"]) == ("vision_ffn.mlp", name)
    else:
        assert "inner" not in seats(found)
        assert found.reasons()["inner"] == "activation"


@RUN
def test_projections_of_a_refused_mlp_are_seated_alone(run: bool) -> None:
    found = scanned(Plain(nn.Hardswish()), run=run)
    assert {"inner.fc1", "inner.fc2"} <= seats(found).keys()


# ---------------------------------------------------------------- what a name would hide


class Swapped(Gated):
    """The activation is on what is called up."""

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(self.act_fn(self.up_proj(x)) * self.gate_proj(x))


@RUN
def test_gate_and_up_are_told_by_numbers_not_by_name(run: bool) -> None:
    found = scanned(Swapped(nn.SiLU()), run=run)
    (seat,) = [s for s in found.seats if s.path == "inner"]
    assert seat.slots["w_gate"].path == "inner.up_proj.weight"  # type: ignore[union-attr]


class Square(nn.Module):
    """Two square matrices, the second one first."""

    def __init__(self) -> None:
        super().__init__()
        self.second = nn.Linear(D, D)
        self.first = nn.Linear(D, D)
        self.act = nn.GELU()

    def forward(self, x: Tensor) -> Tensor:
        return self.second(self.act(self.first(x)))


@RUN
def test_square_matrices_are_told_apart(run: bool) -> None:
    found = scanned(Square(), run=run)
    (seat,) = [s for s in found.seats if s.path == "inner"]
    assert seat.slots["w_fc1"].path == "inner.first.weight"  # type: ignore[union-attr]


class Fused(nn.Module):
    """Gate and up in one parameter; ``up_first`` says in which order."""

    def __init__(self, up_first: bool) -> None:
        super().__init__()
        self.proj = nn.Linear(D, 2 * F, bias=False)
        self.down = nn.Linear(F, D, bias=False)
        self.up_first = up_first

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.proj(x).chunk(2, dim=-1)
        up, gate = (a, b) if self.up_first else (b, a)
        return self.down(nnf.gelu(gate, approximate="tanh") * up)


class Clipped(Gated):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).clamp(-0.05, 0.05)


class Doubled(Gated):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


@RUN
@pytest.mark.parametrize("inner", [Clipped(nn.SiLU()), Doubled(nn.SiLU())], ids=["clip", "double"])
def test_what_computes_something_else_says_by_how_much(inner: nn.Module, run: bool) -> None:
    found = scanned(inner, run=run)
    assert "inner" not in seats(found)
    (row,) = [row for row in found.left_out if row.path == "inner"]
    assert row.code == "disagrees" and "relative distance" in row.reason


@RUN
@pytest.mark.parametrize("up_first", [True, False])
def test_an_activation_that_is_written_inline_is_told_by_numbers(up_first: bool, run: bool) -> None:
    found = scanned(Fused(up_first), run=run)
    (seat,) = [s for s in found.seats if s.path == "inner"]
    assert (seat.target, seat.variants["activation"]) == ("decoder_ffn.mlp", "gelu")
    assert not any(expect.fact == "activation" for expect in seat.expects)


class FusedWithModule(Fused):
    def __init__(self, up_first: bool) -> None:
        super().__init__(up_first)
        self.act = nn.GELU(approximate="tanh")

    def forward(self, x: Tensor) -> Tensor:
        a, b = self.proj(x).chunk(2, dim=-1)
        up, gate = (a, b) if self.up_first else (b, a)
        return self.down(self.act(gate) * up)


@RUN
@pytest.mark.parametrize("up_first", [True, False])
def test_the_order_of_chunks_is_told_by_numbers(up_first: bool, run: bool) -> None:
    found = scanned(FusedWithModule(up_first), run=run)
    order = "up, gate" if up_first else "gate, up"
    assert f"slot w_gate = chunks(proj.weight, {order}) : out_in" in found.binding


# ---------------------------------------------------------------- weights that are not plain


class LoraLinear(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.base_layer = nn.Linear(D, D)
        self.lora_A = nn.Linear(D, 2, bias=False)
        self.lora_B = nn.Linear(2, D, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base_layer(x) + self.lora_B(self.lora_A(x))


class OtherLinear(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * 2


def hooked() -> nn.Module:
    linear = nn.Linear(D, D)
    linear.register_forward_hook(lambda module, args, output: output + 1)
    return linear


def replaced() -> nn.Module:
    linear = nn.Linear(D, D)
    linear.forward = lambda x: x  # type: ignore[assignment, method-assign]
    return linear


def parametrized() -> nn.Module:
    linear = nn.Linear(D, D)
    parametrize.register_parametrization(linear, "weight", nn.Identity())
    return linear


def quantised() -> nn.Module:
    linear = nn.Linear(D, D, bias=False)
    linear.weight = nn.Parameter(torch.ones(D, D, dtype=torch.int8), requires_grad=False)
    linear.forward = lambda x: x  # type: ignore[assignment, method-assign]
    return linear


BAD = {
    "subclass": OtherLinear(D, D),
    "hooked": hooked(),
    "replaced": replaced(),
    "parametrized": parametrized(),
}


@RUN
@pytest.mark.parametrize("code", BAD)
def test_a_linear_that_is_not_plain_is_refused_by_name(code: str, run: bool) -> None:
    found = scanned(BAD[code], run=run)
    assert "inner" not in seats(found)
    assert found.reasons()["inner"] == code


def test_packed_weights_are_refused_before_the_forward_is_looked_at() -> None:
    inner = quantised()
    del inner.__dict__["forward"]
    assert scanned(inner, run=False).reasons()["inner"] == "quantised"


@RUN
def test_a_lora_wrapped_linear_is_refused_by_name(run: bool) -> None:
    found = scanned(LoraLinear(), run=run)
    assert not any(path.startswith("inner") for path in seats(found))
    codes = {row.path: row.code for row in found.left_out}
    assert codes["inner.base_layer"] == "adapter"


@RUN
def test_a_hook_inside_an_mlp_refuses_the_mlp(run: bool) -> None:
    inner = Gated(nn.SiLU())
    inner.up_proj.register_forward_hook(lambda module, args, output: None)
    found = scanned(inner, run=run)
    assert "inner" not in seats(found) and "inner.up_proj" not in seats(found)
    assert found.reasons()["inner"] == found.reasons()["inner.up_proj"] == "hooked"


class Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(24, D)
        self.head = nn.Linear(D, 24, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.embed(ids))


@RUN
def test_a_tied_head_is_left_out_and_says_with_what(run: bool) -> None:
    model = Tied()
    found = scan(model, (lambda: model(torch.arange(4)[None])) if run else None)
    assert found.seats == ()
    (row,) = found.left_out
    assert (row.path, row.code) == ("head", "tied") and "embed.weight" in row.reason


# ---------------------------------------------------------------- calls that don't happen


class Functional(Plain):
    """Uses the weights and never calls the modules."""

    def forward(self, x: Tensor) -> Tensor:
        h = nnf.gelu(nnf.linear(x, self.fc1.weight, self.fc1.bias))
        return nnf.linear(h, self.fc2.weight, self.fc2.bias)


def test_weights_that_are_used_functionally_are_left_out() -> None:
    found = scanned(Functional(nn.GELU()))
    assert not any(path.startswith("inner.") for path in seats(found))
    codes = found.reasons()
    assert codes["inner.fc1"] == codes["inner.fc2"] == "functional"


class Unused(Gated):
    def __init__(self) -> None:
        super().__init__(nn.SiLU())
        self.spare = nn.Linear(D, D)


def test_a_module_that_never_runs_is_left_out() -> None:
    found = scanned(nn.Sequential(Unused()))
    assert found.reasons()["inner.0.spare"] == "uncalled"


class TwoValues(Gated):
    def forward(self, x: Tensor) -> Any:
        return super().forward(x), None


class TakesFirst(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.mlp = TwoValues(nn.SiLU())

    def forward(self, x: Tensor) -> Tensor:
        return self.mlp(x)[0] * 0.5


@RUN
def test_an_mlp_that_returns_a_tuple_is_left_out(run: bool) -> None:
    found = scanned(TakesFirst(), run=run)
    assert "inner.mlp" not in seats(found)
    assert "returns a tuple" in next(r.reason for r in found.left_out if r.path == "inner.mlp")


@RUN
def test_one_module_in_two_places_is_left_out(run: bool) -> None:
    shared = Gated(nn.SiLU())
    found = scanned(nn.Sequential(shared, shared), run=run)
    assert list(seats(found)) == ["norm"]
    codes = found.reasons()
    assert codes["inner.0"] == codes["inner.0.up_proj"] == codes["inner.1.up_proj"] == "shared"


# ---------------------------------------------------------------- projections together


class WideQuery(nn.Module):
    """Qwen3-Next's attention: the projection of queries gives a gate, too."""

    def __init__(self, *, apart: bool = False, biased: tuple[bool, ...] = (False,) * 3) -> None:
        super().__init__()
        self.apart = apart
        for name, width, bias in zip(
            ("q_proj", "k_proj", "v_proj"), (2 * D, D, D), biased, strict=True
        ):
            setattr(self, name, nn.Linear(D, width, bias=bias))
        self.o_proj = nn.Linear(D, D, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        q, gate = self.q_proj(x).chunk(2, dim=-1)
        other = x + 1 if self.apart else x
        k, v = self.k_proj(other), self.v_proj(other)
        return self.o_proj(nnf.scaled_dot_product_attention(q, k, v) * torch.sigmoid(gate))


def test_a_wide_projection_of_queries_keeps_its_own_width() -> None:
    found = scanned(WideQuery())
    (pack,) = [seat for seat in found.seats if seat.target == "qkv_pack"]
    assert pack.members == ("inner.q_proj", "inner.k_proj", "inner.v_proj")
    assert pack.dims == {"K": D, "N[0]": 2 * D, "N[1]": D, "N[2]": D}


def test_only_what_really_shares_an_input_is_packed() -> None:
    found = scanned(WideQuery(apart=True))
    (pack,) = [seat for seat in found.seats if seat.target == "qkv_pack"]
    assert pack.members == ("inner.k_proj", "inner.v_proj")
    assert seats(found)["inner.q_proj"] == "linear_proj"


def test_projections_of_which_some_have_a_bias_stand_alone() -> None:
    found = scanned(WideQuery(biased=(True, False, True)))
    assert "qkv_pack" not in seats(found).values()
    assert {"inner.q_proj", "inner.k_proj", "inner.v_proj"} <= seats(found).keys()


def test_a_multihead_attention_uses_its_projection_functionally() -> None:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.mha = nn.MultiheadAttention(D, 2, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            return self.mha(x, x, x, need_weights=True)[0]

    found = scanned(Attention())
    assert found.reasons()["inner.mha.out_proj"] == "functional"


# ---------------------------------------------------------------- what can't be written


@RUN
def test_parts_of_a_region_whose_paths_cant_be_written_are_seated_alone(run: bool) -> None:
    found = scanned(nn.Sequential(nn.Linear(D, F), nn.GELU(), nn.Linear(F, D)), run=run)
    assert found.reasons()["inner"] == "no_path"
    assert seats(found)["inner.0"] == seats(found)["inner.2"] == "linear_proj"


@RUN
def test_a_module_that_is_called_like_a_number_is_left_out(run: bool) -> None:
    model = nn.Sequential(nn.LayerNorm(D), Gated(nn.SiLU())).eval()
    x = torch.randn(2, D)
    found = scan(model, (lambda: model(x)) if run else None)
    assert found.seats == ()
    assert {found.reasons()["0"], found.reasons()["1"]} == {"no_path"}
    assert "binding sequential" in found.binding


def test_a_block_that_is_the_whole_model_has_no_boundary_to_name() -> None:
    host = Host(Plain(nn.GELU())).eval()
    x = torch.randn(2, 3, D)
    found = scan(host, lambda: host(x))
    (seat,) = [seat for seat in found.seats if seat.target == "vision_ffn.mlp"]
    assert seat.boundary is not None and "the model itself" in str(seat.boundary.none)
