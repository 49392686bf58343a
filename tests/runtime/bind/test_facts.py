"""Host facts: read from the live module or probed by numbers, both sides in the refusal."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as nnf

from frtspec.ir import words
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import facts
from frtspec.runtime.spec import Expect
from tests.runtime.bind.support import watch
from tests.runtime.hosts_small import TinyRMSNorm, seat_named, tiny_decoder


def test_the_language_and_the_runtime_know_the_same_facts() -> None:
    assert set(facts.FACTS) == set(words.FACTS)
    known = {*facts.ACTIVATIONS, "gelu"}
    assert set(words.FACT_VALUES["activation"]) <= known


def expecting(model: nn.Module, *expects: Expect, form: Any = None) -> None:
    facts.check_expects(model, replace(seat_named(model, "ffn[0]"), expects=expects), form)


def refused(model: nn.Module, *expects: Expect, form: Any = None) -> Refusal:
    with pytest.raises(Refusal) as caught:
        expecting(model, *expects, form=form)
    assert caught.value.code == "host.fact" and caught.value.seat == "ffn[0]"
    return caught.value


def test_what_the_binding_says_of_the_tiny_host_holds() -> None:
    model = tiny_decoder()
    for name in ("ffn[0]", "qkv[0]", "o[0]", "norm[0]"):
        facts.check_expects(model, seat_named(model, name))


def test_class_is_exact() -> None:
    model = tiny_decoder()
    expecting(model, Expect("class", ("OtherMLP", "TinyMLP")))
    found = refused(model, Expect("class", ("OtherMLP",)))
    assert "expected class OtherMLP, found TinyMLP" in found.what
    model.layers[0].mlp.__class__ = type("TinierMLP", (type(model.layers[0].mlp),), {})
    assert "found TinierMLP" in refused(model, Expect("class", ("TinyMLP",))).what


def test_bias_names_the_module_that_differs() -> None:
    model = tiny_decoder()
    paths = ("layers.0.mlp.gate_proj", "layers.0.mlp.up_proj")
    expecting(model, Expect("bias", ("none",), paths))
    model.layers[0].mlp.up_proj.bias = nn.Parameter(torch.zeros(64))
    found = refused(model, Expect("bias", ("none",), paths))
    assert "layers.0.mlp.up_proj: expected bias none, found all" in found.what


@pytest.mark.parametrize(
    ("value", "right", "wrong"), [("returns", "tensor", "tuple"), ("call", "positional", "keyword")]
)
def test_facts_about_calls_wait_for_a_call(value: str, right: str, wrong: str) -> None:
    model = tiny_decoder()
    form = watch(model).form("ffn[0]")
    expecting(model, Expect(value, (wrong,)))
    expecting(model, Expect(value, (right,)), Expect("forward", ("called",)), form=form)
    found = refused(model, Expect(value, (wrong,)), form=form)
    assert f"expected {value} {wrong}, found {right}" in found.what


def test_an_unknown_fact_is_refused() -> None:
    assert "known: class" in refused(tiny_decoder(), Expect("colour", ("red",))).what


# ---------------------------------------------------------------- activations


class Silu(nn.Module):
    """Another class with the same numbers."""

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.sigmoid(x)


def new_gelu(x: Tensor) -> Tensor:
    return 0.5 * x * (1 + torch.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


KNOWN: list[tuple[Callable[[Tensor], Tensor], str]] = [
    (nn.SiLU(), "silu"),
    (Silu(), "silu"),
    (nn.GELU(), "gelu_erf"),
    (nn.GELU("tanh"), "gelu_tanh"),
    (new_gelu, "gelu_tanh"),
    (lambda x: x * torch.sigmoid(1.702 * x), "quick_gelu"),
    (nn.ReLU(), "relu"),
    (lambda x: nnf.relu(x) ** 2, "relu_squared"),
    (nn.Hardswish(), "hardswish"),
    (nn.Mish(), "mish"),
    (nn.Identity(), "identity"),
]


@pytest.mark.parametrize(("function", "name"), KNOWN, ids=lambda v: v if isinstance(v, str) else "")
def test_activations_are_told_apart_by_their_values(function: Any, name: str) -> None:
    assert facts.activation_of(function) == name


def test_no_two_activations_look_alike() -> None:
    for name, function in facts.ACTIVATIONS.items():
        assert facts.activation_of(function) == name


def test_transformers_activations() -> None:
    activations = pytest.importorskip("transformers.activations")
    pairs = {
        "silu": "silu",
        "gelu": "gelu_erf",
        "gelu_pytorch_tanh": "gelu_tanh",
        "gelu_new": "gelu_tanh",
        "quick_gelu": "quick_gelu",
        "relu2": "relu_squared",
    }
    for theirs, ours in pairs.items():
        assert facts.activation_of(activations.ACT2FN[theirs]) == ours


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (nn.Softmax(dim=-1), "none of"),
        (nn.GLU(), "not elementwise"),
        (nn.Linear(3, 3), "can't be probed"),
        (lambda x: x * 0.9, "none of"),
    ],
)
def test_what_is_no_known_activation_says_what_it_is(function: Any, says: str) -> None:
    assert says in facts.activation_of(function)


def test_an_activation_of_another_kind_is_refused() -> None:
    path = ("layers.0.mlp.act_fn",)
    model = tiny_decoder(hidden_act="gelu_pytorch_tanh")
    expecting(model, Expect("activation", ("gelu_tanh",), path))
    expecting(model, Expect("activation", ("gelu",), path))
    found = refused(model, Expect("activation", ("gelu_erf",), path))
    assert "expected activation gelu_erf, found gelu_tanh" in found.what
    assert "does not say of which module" in refused(model, Expect("activation", ("silu",))).what


def test_a_plain_function_on_the_module_is_found() -> None:
    model = tiny_decoder()
    model.layers[0].mlp.kernel = nnf.silu
    expecting(model, Expect("activation", ("silu",), ("layers.0.mlp.kernel",)))


# ---------------------------------------------------------------- norms


class OffsetNorm(nn.Module):
    """(1 + w) in float32, rounded once: Gemma's."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight, self.eps = nn.Parameter(torch.zeros(size)), 1e-6

    def forward(self, x: Tensor) -> Tensor:
        h = x.float() * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + self.eps)
        return (h * (1 + self.weight.float())).to(x.dtype)


def test_where_a_norm_rounds_is_probed_and_the_norm_is_left_alone() -> None:
    ours = TinyRMSNorm(32, 1e-6)
    before = ours.weight
    assert facts.norm_rounding_of(ours) == "before_weight"
    assert ours.weight is before and torch.equal(before, torch.ones(32))
    assert facts.norm_rounding_of(OffsetNorm(32)) == "after_weight"
    assert "neither order" in facts.norm_rounding_of(nn.LayerNorm(32))
    assert "no weight" in facts.norm_rounding_of(nn.LayerNorm(32, elementwise_affine=False))


def test_norms_of_transformers() -> None:
    llama = pytest.importorskip("transformers.models.llama.modeling_llama")
    qwen3 = pytest.importorskip("transformers.models.qwen3.modeling_qwen3")
    gemma3 = pytest.importorskip("transformers.models.gemma3.modeling_gemma3")
    assert facts.norm_rounding_of(llama.LlamaRMSNorm(64, 1e-5)) == "before_weight"
    assert facts.norm_rounding_of(qwen3.Qwen3RMSNorm(64, 1e-6)) == "before_weight"
    assert facts.norm_rounding_of(gemma3.Gemma3RMSNorm(64, 1e-6)) == "after_weight"


def test_norm_rounding_as_a_fact() -> None:
    model = tiny_decoder()
    path = ("layers.0.post_attention_layernorm",)
    expecting(model, Expect("norm_rounding", ("before_weight",), path))
    found = refused(model, Expect("norm_rounding", ("after_weight",), path))
    assert "expected norm_rounding after_weight, found before_weight" in found.what
