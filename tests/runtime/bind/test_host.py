"""Reading a host: versions, classes, paths, weights, and weights that must not be read."""

from __future__ import annotations

from dataclasses import replace
from importlib.metadata import version
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from frtspec.dims import dims
from frtspec.runtime.errors import Refusal
from frtspec.runtime.hosts import host, weights
from frtspec.runtime.spec import Host, HostBinding, Weight
from tests.runtime.hosts_small import BINDING, TinyDecoder, seat_named, tiny_decoder


def refused(call: Any, *args: Any, **kwargs: Any) -> Refusal:
    with pytest.raises(Refusal) as caught:
        call(*args, **kwargs)
    assert caught.value.fix
    return caught.value


# ---------------------------------------------------------------- the host itself


def test_the_right_host_passes() -> None:
    host.check_host(BINDING, tiny_decoder())


class MyDecoder(TinyDecoder):
    """A user's subclass is still that host."""


def test_a_subclass_passes_and_another_class_does_not() -> None:
    host.check_host(BINDING, MyDecoder(tiny_decoder().config))
    found = refused(host.check_host, BINDING, nn.Linear(2, 2))
    assert found.code == "host.class"
    assert "TinyDecoder" in found.what and "Linear" in found.what


def test_versions_are_compared_with_what_is_installed() -> None:
    model = tiny_decoder()

    def of(package: str, versions: str | None) -> HostBinding:
        return replace(BINDING, hosts=(Host(package, versions, ("TinyDecoder",)),))

    found = refused(host.check_host, of("torch", ">=99"), model)
    assert found.code == "host.version" and version("torch") in found.what
    found = refused(host.check_host, of("no-such-package", ">=2"), model)
    assert found.code == "host.package"
    host.check_host(of("no-such-package", None), model)


def test_of_several_hosts_the_model_tells_which() -> None:
    others = (
        Host("no-such-package", ">=2", ("SomethingElse",)),
        Host("native", module="somewhere.Engine"),
        Host("torch", ">=2", ("TinyDecoder",)),
    )
    found = host.check_host(replace(BINDING, hosts=others), tiny_decoder())
    assert found.package == "torch" and found.hosts[0].classes == ("TinyDecoder",)
    assert {h.package for h in found.hosts} == {h.package for h in others}
    refusal = refused(host.check_host, replace(BINDING, hosts=others[:2]), tiny_decoder())
    assert refusal.code == "host.class" and "SomethingElse" in refusal.what


def test_a_native_module_is_nothing_to_attach_to() -> None:
    native = replace(BINDING, hosts=(Host("native", module="somewhere.Engine"),))
    found = refused(host.check_host, native, tiny_decoder())
    assert found.code == "host.native" and "somewhere.Engine" in found.what


def test_another_abi_is_refused() -> None:
    found = refused(host.check_host, replace(BINDING, runtime_abi=99), tiny_decoder())
    assert found.code == "host.abi" and "99" in found.what


class PeftModel(nn.Module):
    """Named as the wrapper of the adapter library."""


def test_wrapped_models_are_told_how_to_unwrap() -> None:
    compiled = torch.compile(tiny_decoder(), backend="eager")
    found = refused(host.check_host, BINDING, compiled)
    assert found.code == "host.wrapped" and "_orig_mod" in found.fix
    found = refused(host.check_host, BINDING, PeftModel())
    assert found.code == "host.wrapped" and "get_base_model" in found.fix


# ---------------------------------------------------------------- config expressions


def test_config_helpers() -> None:
    config = {"a": {"b": 3}, "none": None}
    assert host.get(config, "a", "b") == 3
    assert host.get(config, "none", "b") is None
    assert host.get(tiny_decoder().config, "no_such") is None
    assert host.first(None, lambda: 5) == 5
    assert host.first(0, lambda: 5) == 0
    assert host.exact_div(12, 4) == 3
    assert refused(host.exact_div, 12, 5).code == "host.config"
    assert refused(host.exact_div, 12, 0).code == "host.config"


# ---------------------------------------------------------------- paths


def test_paths_resolve_and_misses_name_the_nearest() -> None:
    model = tiny_decoder()
    assert host.submodule(model, "layers.1.mlp.up_proj") is model.layers[1].mlp.up_proj
    assert host.submodule(model, "") is model
    found = refused(host.submodule, model, "model.layers.1.mlp")
    assert found.code == "host.path"
    assert "the model (TinyDecoder) has no model" in found.what
    assert "layers.1.mlp" in found.fix
    found = refused(host.submodule, model, "layers.7.mlp")
    assert "layers (ModuleList) has no 7; it holds 0, 1" in found.what


# ---------------------------------------------------------------- weights


def test_weights_come_in_out_detached_and_uncopied() -> None:
    model = tiny_decoder()
    read = host.seat_weights(model, seat_named(model, "ffn[0]"))
    gate = model.layers[0].mlp.gate_proj.weight
    assert isinstance(read["w_gate"], Tensor)
    assert torch.equal(read["w_gate"], gate.T) and read["w_gate"].shape == (32, 64)
    assert read["w_gate"].data_ptr() == gate.data_ptr()
    assert not read["w_gate"].requires_grad
    norm = host.boundary_weights(model, seat_named(model, "ffn[0]"))
    assert torch.equal(norm["w_norm"], model.layers[0].post_attention_layernorm.weight)


def test_repeated_slots_are_tuples() -> None:
    model = tiny_decoder()
    read = host.seat_weights(model, seat_named(model, "qkv[0]"))
    assert [tuple(w.shape) for w in read["w"]] == [(32, 32), (32, 16), (32, 16)]


def test_views() -> None:
    model = tiny_decoder()
    seat = seat_named(model, "o[0]")
    model.packed = nn.Linear(4, 6)
    model.experts = nn.Module()
    model.experts.stack = nn.Parameter(torch.randn(3, 6, 4))
    up = model.packed.weight.detach()

    def view(path: str | None, layout: str | None, kind: str, *args: Any) -> Tensor:
        value = host.read_weight(model, seat, Weight(path, layout, kind, args), slot="w")
        assert value is not None
        return value

    chunk = view("packed.weight", "out_in", "chunks", "b", "a", "b", "c")
    assert torch.equal(chunk, up[2:4].T)
    bias = view("packed.bias", None, "chunks", "c", "a", "b", "c")
    assert torch.equal(bias, model.packed.bias.detach()[4:])
    wide = view("packed.weight", "in_out", "chunks", "b", "a", "b")
    assert torch.equal(wide, up[:, 2:])
    assert torch.equal(view("packed.weight", "out_in", "transpose"), up)
    expert = view("experts.stack", "out_in", "expert", 2)
    assert torch.equal(expert, model.experts.stack.detach()[2].T)
    assert torch.equal(view(None, None, "zeros"), torch.zeros(32, 32))
    assert torch.equal(view(None, None, "ones"), torch.ones(32, 32))
    assert torch.equal(view("packed.weight", "out_in", "part", 1, 3), up[2:4].T)
    assert torch.equal(view("packed.bias", None, "part", 0, 2), model.packed.bias.detach()[:3])
    stack = model.experts.stack.detach()
    assert torch.equal(view("experts.stack", "out_in", "flat"), stack.flatten(1).T)
    assert torch.equal(view("experts.stack", "out_in", "param"), stack.mT)  # each of its matrices
    model.experts.row = nn.Parameter(torch.randn(1, 2, 4))
    assert torch.equal(view("experts.row", "in_out", "squeeze"), model.experts.row.detach()[0])
    for path, kind, *args in (
        ("packed.weight", "folded"),
        ("packed.weight", "squeeze"),
        ("packed.weight", "part", 0, 4),
        ("experts.stack", "expert", 7),
    ):
        found = refused(view, path, "out_in", kind, *args)
        assert found.code == "host.view" and path in found.what


def test_a_wrong_layout_is_a_wrong_shape() -> None:
    model = tiny_decoder()
    seat = seat_named(model, "ffn[0]")
    slots = {**seat.slots, "w_gate": Weight("layers.0.mlp.gate_proj.weight", "in_out")}
    found = refused(host.seat_weights, model, replace(seat, slots=slots))
    assert found.code == "host.shape" and found.seat == "ffn[0]"
    assert "w_gate, axis 0: expected D = 32, found 64" in found.what


def test_sizes_that_disagree_with_the_config_are_refused() -> None:
    model = tiny_decoder()
    seat = replace(seat_named(model, "ffn[0]"), dims={"D": 32, "F": 128})
    assert refused(host.seat_weights, model, seat).code == "host.shape"
    open_dims = replace(seat, dims={})
    read = host.seat_weights(model, open_dims)
    assert host.solved_dims(open_dims, read) == {"D": 32, "F": 64}


def test_an_absent_optional_weight_is_left_out_and_a_needed_one_is_refused() -> None:
    model = tiny_decoder()
    seat = seat_named(model, "o[0]")
    slots = {**seat.slots, "b": Weight("layers.0.self_attn.o_proj.bias")}
    assert "b" not in host.seat_weights(model, replace(seat, slots=slots))
    needed = replace(seat, slots=slots, structure=replace(seat.structure, optional=()))
    found = refused(host.seat_weights, model, needed)
    assert found.code == "host.weight" and "o_proj.bias" in found.what


def test_a_weight_that_only_some_siblings_have_is_refused() -> None:
    model = tiny_decoder()
    seat = seat_named(model, "qkv[0]")
    model.layers[0].self_attn.k_proj.bias = nn.Parameter(torch.zeros(16))
    at = "layers.0.self_attn"
    biases = tuple(Weight(f"{at}.{name}_proj.bias") for name in "qkv")
    (n_i,) = dims("N[i]")
    structure = replace(
        seat.structure, optional=("b",), shapes={**seat.structure.shapes, "b": (n_i,)}
    )
    mixed = replace(seat, structure=structure, slots={**seat.slots, "b": biases})
    found = refused(host.seat_weights, model, mixed)
    assert found.code == "host.weight" and "q_proj.bias" in found.what


def test_an_unknown_parameter_names_what_is_there() -> None:
    found = refused(host.parameter, tiny_decoder(), "layers.0.mlp.gate_proj.wieght")
    assert found.code == "host.weight" and "weight" in found.what


# ---------------------------------------------------------------- what must not be read

PATH = "layers.0.mlp.gate_proj.weight"


def unreadable(model: nn.Module) -> Refusal:
    """The refusal of the seat; the model computes as before the attempt."""
    found = refused(host.seat_weights, model, seat_named(model, "ffn[0]"))
    assert PATH in found.what and found.seat == "ffn[0]"
    return found


def gate(model: nn.Module) -> nn.Linear:
    return model.layers[0].mlp.gate_proj


def test_meta_weights() -> None:
    model = tiny_decoder()
    gate(model).to("meta")
    assert unreadable(model).code == "host.meta"


def test_weights_offloaded_by_accelerate() -> None:
    accelerate = pytest.importorskip("accelerate")
    model = tiny_decoder()
    batch = torch.arange(6).reshape(1, 6)
    with torch.no_grad():
        before = model(batch)
    accelerate.cpu_offload(model, execution_device="cpu")
    found = unreadable(model)
    assert found.code == "host.offloaded" and "accelerate" in found.what
    with torch.no_grad():
        assert torch.equal(model(batch), before)


def test_adapter_wrapped_weights() -> None:
    model = tiny_decoder()
    wrapper = nn.Module()
    wrapper.base_layer = gate(model)
    wrapper.weight = gate(model).weight
    model.layers[0].mlp.gate_proj = wrapper
    found = unreadable(model)
    assert found.code == "host.adapter" and "LoRA-wrapped" in found.what
    saved = nn.Module()
    saved.original_module, saved.modules_to_save = wrapper.base_layer, nn.ModuleDict()
    saved.weight = wrapper.weight
    model.layers[0].mlp.gate_proj = saved
    assert unreadable(model).code == "host.adapter"


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.float8_e4m3fn])
def test_packed_codes(dtype: torch.dtype) -> None:
    model = tiny_decoder()
    codes = torch.zeros(64, 32).to(dtype)
    gate(model).weight = nn.Parameter(codes, requires_grad=False)
    assert unreadable(model).code == "host.quantised"


def test_a_scale_beside_the_weight() -> None:
    model = tiny_decoder()
    gate(model).register_buffer("weight_scale", torch.ones(64))
    assert unreadable(model).code == "host.quantised"


class Wrapped(Tensor):
    """A tensor subclass, as quantisation libraries use them."""


def test_tensor_subclasses() -> None:
    model = tiny_decoder()
    del gate(model).weight
    gate(model).register_buffer("weight", torch.zeros(64, 32).as_subclass(Wrapped))
    found = unreadable(model)
    assert found.code == "host.quantised" and "Wrapped" in found.what


class DTensor(Tensor):
    """Named as a shard of a distributed tensor."""


def test_sharded_weights() -> None:
    model = tiny_decoder()
    del gate(model).weight
    gate(model).register_buffer("weight", torch.zeros(64, 32).as_subclass(DTensor))
    assert unreadable(model).code == "host.sharded"


class Doubled(nn.Module):
    def forward(self, weight: Tensor) -> Tensor:
        return weight * 2


def test_parametrized_weights() -> None:
    model = tiny_decoder()
    parametrize.register_parametrization(gate(model), "weight", Doubled())
    assert unreadable(model).code == "host.parametrized"


def test_tied_weights() -> None:
    model = tiny_decoder()
    model.layers[1].mlp.up_proj.weight = gate(model).weight
    found = unreadable(model)
    assert found.code == "host.tied" and "layers.1.mlp.up_proj.weight" in found.what


def test_one_model_under_two_names_is_not_tied() -> None:
    model = tiny_decoder()
    model.decoder = model.layers
    assert host.seat_weights(model, seat_named(model, "ffn[0]"))


# ---------------------------------------------------------------- fingerprints


@pytest.mark.parametrize(
    "dtype", [torch.float32, torch.bfloat16, torch.float64, torch.float8_e4m3fn]
)
def test_fingerprints_tell_bits_apart(dtype: torch.dtype) -> None:
    value = torch.randn(300, 7).to(dtype)
    mark = weights.fingerprint(value)
    assert weights.fingerprint(value.clone()) == mark
    swapped = value.clone()
    swapped[[0, 1]] = swapped[[1, 0]]
    assert weights.fingerprint(swapped) != mark
    edited = value.float()
    edited[200, 3] += 1
    assert weights.fingerprint(edited.to(dtype)) != mark


def test_fingerprints_see_edits_through_data() -> None:
    weight = nn.Parameter(torch.randn(8, 8))
    mark, version = weights.fingerprint(weight), weight._version
    weight.data.mul_(1.5)
    assert weight._version == version and weights.fingerprint(weight) != mark


def test_fingerprints_cover_more_than_one_slice() -> None:
    value = torch.zeros((1 << 21) + 5, dtype=torch.int8)
    mark = weights.fingerprint(value)
    value[-1] = 1
    assert weights.fingerprint(value) != mark
