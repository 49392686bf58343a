"""Attached hosts in the hands of other libraries: adapters, device hooks, savers, shards."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import torch as st
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from frtspec.runtime import Plan, Refusal
from frtspec.runtime.seats.ledger import IN_A_ROW, FallbackWarning
from frtspec.runtime.seats.seatmodule import SeatModule
from tests.hosts.tiny import LLAMA
from tests.runtime.lifecycle.support import bits, picture, same_bits

accelerate = pytest.importorskip("accelerate")
peft = pytest.importorskip("peft")

SAMPLES = LLAMA.samples(2)
SEATS = ("ffn[0]", "ffn[1]", "o[0]", "o[1]", "qkv[0]", "qkv[1]")
pytestmark = pytest.mark.filterwarnings("ignore::frtspec.runtime.seats.ledger.FallbackWarning")


@pytest.fixture
def model() -> nn.Module:
    return LLAMA.model()


def attach(model: nn.Module, door: str = "build", **options: Any) -> Plan:
    """The llama package's door, FP8 on the emulate rung, for linears and MLPs."""
    return getattr(LLAMA.generated(), door)(
        model,
        lambda sample: model(**sample),
        observations=SAMPLES,
        scheme="fp8_static",
        rungs=("emulate",),
        structures=("decoder_ffn", "qkv_pack", "linear_proj"),
        **options,
    )


def logits(model: nn.Module) -> Tensor:
    with torch.no_grad():
        return model(**SAMPLES[0]).logits


def off(found: Tensor, wanted: Tensor) -> float:
    return float((found - wanted).norm() / wanted.norm())


def refused(plan: Plan, *names: str) -> dict[str, str]:
    """Code of each of these seats; all of them are refused."""
    assert {plan.seat(name).state for name in names} == {"refused"}, plan.explain()
    return {name: plan.seat(name).code for name in names}


# ---------------------------------------------------------------- adapters


def lora(model: nn.Module, *targets: str, **more: Any) -> Any:
    torch.manual_seed(3)
    config = peft.LoraConfig(target_modules=list(targets), init_lora_weights=False, **more)
    return peft.get_peft_model(model, config).eval()


def test_a_peft_model_is_refused_at_the_root_and_its_base_is_not(model: nn.Module) -> None:
    wrapped = lora(model, "q_proj", "gate_proj", modules_to_save=["lm_head"])
    torch.manual_seed(4)
    other = peft.LoraConfig(target_modules=["q_proj", "gate_proj"], init_lora_weights=False)
    wrapped.add_adapter("other", other)
    with pytest.raises(Refusal, match="get_base_model"):
        attach(wrapped)

    def modes() -> list[Tensor]:
        found = [logits(wrapped)]
        with wrapped.disable_adapter():
            found.append(logits(wrapped))
        wrapped.set_adapter("other")
        found.append(logits(wrapped))
        wrapped.set_adapter("default")
        return found

    wrapped.eval()
    eager = modes()
    base = wrapped.get_base_model()
    plan = attach(base, "attach", latency="skip")
    codes = refused(plan, "qkv[0]", "qkv[1]", "ffn[0]", "ffn[1]")
    assert set(codes.values()) == {"host.adapter"}
    assert "model.layers.0.self_attn.q_proj.weight is LoRA-wrapped" in plan.seat("qkv[0]").reason
    assert {"o[0]", "o[1]"} <= set(plan.bound)
    for found, wanted in zip(modes(), eager, strict=True):
        assert 0 < off(found, wanted) < 0.05
    plan.detach()
    for found, wanted in zip(modes(), eager, strict=True):
        assert torch.equal(found, wanted)


def test_an_adapter_put_inside_a_seat_later_is_honoured(model: nn.Module) -> None:
    other = lora(LLAMA.model(), "gate_proj")
    plan = attach(model)
    assert {"ffn[0]", "ffn[1]"} <= set(plan.bound)
    wrapped = lora(model, "gate_proj")
    found, wanted = logits(wrapped), logits(other)
    assert 0 < off(found, wanted) < 0.05
    with wrapped.disable_adapter(), other.disable_adapter():
        assert 0 < off(logits(wrapped), logits(other)) < 0.05
    assert plan.ledger()["ffn[0]"].reasons == {"weights": 2}
    plan.detach()
    assert torch.equal(logits(wrapped), wanted)


def test_an_adapter_over_a_seat_is_refused_by_peft_with_the_seat_named(model: nn.Module) -> None:
    plan = attach(model)
    before = picture(model)
    with pytest.raises(ValueError, match=r"qkv\[0\].*not supported"):
        lora(model, "q_proj")
    assert picture(model)["modules"] == before["modules"]
    plan.detach()


def test_transformers_own_adapter_methods_are_refused_at_the_root(model: nn.Module) -> None:
    plan = attach(model)
    before = picture(model)
    for method in ("add_adapter", "load_adapter"):
        with pytest.raises(Refusal) as caught:
            getattr(model, method)(peft.LoraConfig(target_modules=["q_proj"]))
        assert caught.value.code == f"attached.{method}" and "detach()" in caught.value.fix
    assert picture(model) == before
    plan.detach()
    assert "add_adapter" not in vars(model)


# ---------------------------------------------------------------- accelerate


def test_offloaded_weights_refuse_their_seats_and_the_output_stays(model: nn.Module) -> None:
    wanted = logits(model)
    accelerate.cpu_offload(model, execution_device="cpu")
    plan = attach(model)
    assert set(refused(plan, *SEATS).values()) == {"host.offloaded"}
    assert "accelerate hook present" in plan.seat("o[0]").reason
    assert torch.equal(logits(model), wanted)


def test_weights_on_meta_refuse_their_seats(model: nn.Module) -> None:
    model.model.layers[0].mlp.to("meta")
    plan = attach(model)
    assert refused(plan, "ffn[0]") == {"ffn[0]": "host.meta"}


def test_a_hook_that_only_moves_inputs_leaves_the_seat_bound(model: nn.Module) -> None:
    wanted = logits(model)
    accelerate.dispatch_model(model, {"": "cpu"}, force_hooks=True)
    plan = attach(model)
    assert set(SEATS) <= set(plan.bound)
    assert 0 < off(logits(model), wanted) < 0.05
    assert all(row.clean for row in plan.ledger().values())
    plan.detach()
    assert torch.equal(logits(model), wanted)


class Doubling(accelerate.hooks.ModelHook):
    """A hook that changes what passes."""

    def post_forward(self, module: nn.Module, output: Tensor) -> Tensor:
        return output * 2


def test_a_hook_that_does_more_refuses_the_seat(model: nn.Module) -> None:
    accelerate.hooks.add_hook_to_module(model.model.layers[0].self_attn.o_proj, Doubling())
    plan = attach(model)
    assert refused(plan, "o[0]") == {"o[0]": "host.forward"}
    assert "Doubling" in plan.seat("o[0]").reason and "o[1]" in plan.bound


def test_offloading_an_attached_model_computes_with_the_loaded_weights(model: nn.Module) -> None:
    wanted, before = logits(model), picture(model)
    plan = attach(model)
    accelerate.cpu_offload(model, execution_device="cpu")
    for _ in range(IN_A_ROW + 1):
        assert torch.equal(logits(model), wanted)
    assert isinstance(model.model.layers[0].self_attn.o_proj, SeatModule)  # its hook is on it
    with pytest.raises(Refusal, match="remove_hook_from_submodules") as caught:
        plan.detach()
    assert caught.value.code == "swap.replaced"
    accelerate.hooks.remove_hook_from_submodules(model)
    plan.detach()
    assert picture(model)["modules"] == before["modules"]
    assert torch.equal(logits(model), wanted)


def test_a_hook_put_over_a_seat_wraps_it_and_goes(model: nn.Module) -> None:
    plan = attach(model)
    treated = logits(model)
    seat = model.model.layers[0].self_attn.o_proj
    accelerate.hooks.add_hook_to_module(seat, Doubling())
    assert off(logits(model), treated) > 0.05
    with pytest.raises(Refusal, match=r"o_proj was replaced by add_hook_to_module"):
        plan.attachment.disable(["o[0]"])
    accelerate.hooks.remove_hook_from_module(seat)
    assert torch.equal(logits(model), treated)
    plan.detach()


# ---------------------------------------------------------------- forwards and compiled parts


def doubled(module: nn.Module) -> None:
    real = module.forward

    @functools.wraps(real)
    def twice(*args: Any, **kwargs: Any) -> Any:
        return real(*args, **kwargs) * 2

    module.forward = twice


@pytest.mark.parametrize(
    ("path", "seat"), [("self_attn.o_proj", "o[0]"), ("mlp.gate_proj", "ffn[0]"), ("mlp", "ffn[0]")]
)
def test_a_forward_replaced_before_refuses_the_seat(model: nn.Module, path: str, seat: str) -> None:
    doubled(model.model.layers[0].get_submodule(path))
    wanted = logits(model)
    plan = attach(model)
    assert refused(plan, seat) == {seat: "host.forward"}
    assert f"model.layers.0.{path}" in plan.seat(seat).reason
    assert off(logits(model), wanted) < 0.05


def test_a_forward_replaced_later_wraps_the_seat(model: nn.Module) -> None:
    plan = attach(model)
    o_proj, x = model.model.layers[0].self_attn.o_proj, torch.randn(1, 3, 128)
    with torch.no_grad():
        once = o_proj(x)
        doubled(o_proj)
        assert torch.equal(o_proj(x), once * 2)
        assert "forward" not in o_proj._frt.host.__dict__
    with pytest.raises(Refusal, match="forward of model.layers.0.self_attn.o_proj"):
        plan.detach()
    del o_proj.forward
    plan.detach()


@pytest.mark.parametrize("path", ["", ".mlp", ".mlp.gate_proj"])
@pytest.mark.parametrize("in_place", [True, False])
def test_compiled_parts_refuse_the_seats_in_them(
    model: nn.Module, path: str, in_place: bool
) -> None:
    at = f"model.layers.0{path}"
    module = model.get_submodule(at)
    if in_place:
        module.compile(backend="eager")
    else:
        model.set_submodule(at, torch.compile(module, backend="eager"))
    with torch.compiler.set_stance("force_eager"):  # what it compiles to is no matter here
        plan = attach(model)
    code = "host.wrapped" if not path and not in_place else "host.compiled"
    assert refused(plan, "ffn[0]") == {"ffn[0]": code}
    assert at in plan.seat("ffn[0]").reason and "compile" in plan.seat("ffn[0]").reason
    assert "ffn[1]" in plan.bound


class Scaled(nn.Linear):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) * 3


Scaled.__name__ = "Linear"


@pytest.mark.parametrize(
    ("path", "seat"), [("self_attn.o_proj", "o[0]"), ("mlp.up_proj", "ffn[0]")]
)
def test_a_linear_with_a_forward_of_its_own_refuses_the_seat(
    model: nn.Module, path: str, seat: str
) -> None:
    parent, _, name = path.rpartition(".")
    plain = model.model.layers[0].get_submodule(path)
    other = Scaled(plain.in_features, plain.out_features, bias=False).eval()
    setattr(model.model.layers[0].get_submodule(parent), name, other)
    plan = attach(model)
    assert refused(plan, seat) == {seat: "host.subclass"}


def test_a_shared_layer_refuses_every_seat_inside(model: nn.Module) -> None:
    model.model.layers[1] = model.model.layers[0]
    before, wanted = picture(model), logits(model)
    plan = attach(model)
    assert set(refused(plan, *SEATS).values()) == {"host.shared_module"}
    assert "model.layers.0 and model.layers.1" in plan.seat("ffn[1]").reason
    assert torch.equal(logits(model), wanted)
    plan.detach()
    assert picture(model) == before


# ---------------------------------------------------------------- savers and averages


def test_what_is_saved_has_the_hosts_keys_and_bits(model: nn.Module, tmp_path: Path) -> None:
    wanted = bits(model)
    plan = attach(model)
    model.save_pretrained(tmp_path)
    st.save_model(model, str(tmp_path / "whole.safetensors"))
    torch.save(model.state_dict(), tmp_path / "state.pt")
    assert set(st.load_file(tmp_path / "model.safetensors")) == set(model.state_dict())
    for load in (
        lambda host: st.load_model(host, tmp_path / "whole.safetensors", strict=True),
        lambda host: host.load_state_dict(
            torch.load(tmp_path / "state.pt", weights_only=True), strict=True
        ),
    ):
        other = LLAMA.build().eval()
        load(other)
        assert same_bits(other, wanted)
    plan.detach()


def test_an_average_made_before_follows_the_hosts_own_weights(model: nn.Module) -> None:
    average = AveragedModel(model)
    plan = attach(model)
    with pytest.raises(Refusal, match="detach"):
        AveragedModel(model)
    average.update_parameters(model)
    assert same_bits(average.module, bits(model))
    plan.detach()


# ---------------------------------------------------------------- shards


@pytest.fixture
def mesh(tmp_path: Path) -> Iterator[Any]:
    from torch import distributed
    from torch.distributed.device_mesh import init_device_mesh

    distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path / 'rendezvous'}", rank=0, world_size=1
    )
    yield init_device_mesh("cpu", (1,))
    distributed.destroy_process_group()


def test_weights_that_are_dtensors_refuse_their_seats(model: nn.Module, mesh: Any) -> None:
    from torch.distributed.tensor.parallel import ColwiseParallel, parallelize_module

    parallelize_module(model.model.layers[0].mlp, mesh, {"gate_proj": ColwiseParallel()})
    plan = attach(model)
    assert refused(plan, "ffn[0]") == {"ffn[0]": "host.sharded"}
    assert "DTensor" in plan.seat("ffn[0]").reason and "ffn[1]" in plan.bound


def test_layers_under_fsdp_refuse_their_seats(model: nn.Module, mesh: Any) -> None:
    from torch.distributed.fsdp import fully_shard

    wanted = logits(model)
    fully_shard(model.model.layers[0], mesh=mesh)
    plan = attach(model)
    assert set(refused(plan, "ffn[0]", "o[0]", "qkv[0]").values()) == {"host.sharded"}
    assert "ffn[1]" in plan.bound and off(logits(model), wanted) < 0.05
    plan.detach()
    assert torch.equal(logits(model), wanted)


def test_an_input_of_another_kind_runs_on_the_host(model: nn.Module, mesh: Any) -> None:
    from torch.distributed.tensor import Replicate, distribute_tensor

    plan = attach(model)
    o_proj = model.model.layers[0].self_attn.o_proj
    x = distribute_tensor(torch.randn(2, 128), mesh, [Replicate()])
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FallbackWarning)
        with pytest.raises(RuntimeError, match="mixed torch.Tensor and DTensor"):
            o_proj(x)
    ledger = plan.ledger()["o[0]"]
    assert ledger.reasons == {"arguments": 1} and "DTensor" in ledger.last_reason
