"""What a rung prepares for its kernel when it is bound, and what its steps leave alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from flashrt_gen.impls.decoder_ffn_w4a16_static import DecoderFfnW4a16Static
from flashrt_gen.impls.linear_proj_fp8_static import LinearProjFp8Static
from flashrt_gen.impls.vision_ffn_v3_fp8_static import VisionFfnV3Fp8Static
from torch import Tensor

from frtspec.runtime import BoundImpl, numerics
from frtspec.runtime.rungs.impl import BoundImpl as Base


def hub(form: type[BoundImpl], number: int = 0) -> Any:
    spec = form.SPEC
    every = [*spec.rungs, *(rung for band in spec.bands for rung in band.rungs)]
    return [rung for rung in every if rung.kind == "hub"][number]


def packed() -> DecoderFfnW4a16Static:
    torch.manual_seed(0)
    weights = {"w_gate": torch.randn(64, 128), "w_up": torch.randn(64, 128)}
    return DecoderFfnW4a16Static(**weights, w_down=torch.randn(128, 64), activation="silu")


def packs(weight: Tensor) -> tuple[Tensor, Tensor]:
    made = numerics.quantize_nvfp4_one_level(weight)
    return made.data, numerics.swizzled(made.scale)


def test_what_is_prepared_is_kept_counted_and_moved_by_the_view_alone() -> None:
    impl = packed()
    before = impl.bytes()
    view = impl.on(hub(type(impl)), SimpleNamespace(quantize_w4_weight_bf16=packs))  # type: ignore[arg-type]
    codes = 64 * 256 // 2 + 64 * 128 // 2
    scales = 256 * 4 + 128 * 8  # bytes of the tiles, rows filled up to 128
    assert view.bytes() == before + codes + scales
    assert impl.bytes() == before and "gate_up_w4" not in dict(impl.named_buffers())
    assert isinstance(view.gate_up_t, float)
    assert view.to("meta").gate_up_w4.device.type == "meta"


def test_a_packages_codes_are_the_emulations() -> None:
    """Read back and quantised once more without the scale of the whole: the same codes."""
    impl = packed()
    view = impl.on(hub(type(impl)), SimpleNamespace(quantize_w4_weight_bf16=packs))  # type: ignore[arg-type]
    assert torch.equal(view.gate_up_w4, impl.gate_up) and torch.equal(view.down_w4, impl.down)
    assert torch.equal(view.down_sfb, numerics.swizzled(impl.down_scale))


def test_weights_as_given_are_let_go_of() -> None:
    torch.manual_seed(0)
    sizes = {"w_fc1": (32, 64), "b_fc1": (64,), "w_fc2": (64, 32), "b_fc2": (32,)}
    weights = {name: torch.randn(size) for name, size in sizes.items()}
    scales = {"in_s": torch.ones(1), "hid_s": torch.ones(1)}
    impl = VisionFfnV3Fp8Static(**weights, **scales, activation="gelu_tanh", bias="add", d=32, f=64)
    assert impl.given
    view = impl.on(hub(type(impl)), SimpleNamespace())  # type: ignore[arg-type]
    assert not view.given and impl.given
    assert torch.equal(view.up_b16, weights["b_fc1"].bfloat16())


def test_an_absent_bias_is_prepared_as_zeros() -> None:
    weights = {"w_fc1": torch.randn(32, 64), "w_fc2": torch.randn(64, 32)}
    scales = {"in_s": torch.ones(1), "hid_s": torch.ones(1)}
    impl = VisionFfnV3Fp8Static(
        **weights, **scales, activation="gelu_tanh", bias="none", d=32, f=64
    )
    view = impl.on(hub(type(impl)), SimpleNamespace())  # type: ignore[arg-type]
    assert view.up_b16.shape == (64,) and view.down_b16.shape == (32,)
    assert not view.up_b16.any() and view.up_b16.dtype == torch.bfloat16


def test_an_entry_that_writes_into_its_argument_gets_a_copy() -> None:
    def adds(codes: Tensor, weight: Tensor, bias: Tensor, residual: Tensor, alpha: float) -> Tensor:
        return residual.add_(1)

    form = LinearProjFp8Static(
        w=torch.randn(32, 16),
        b=torch.randn(16),
        in_s=torch.ones(1),
        bias="add",
        epilogue="residual_add",
    )
    view = form.on(hub(type(form), 1), SimpleNamespace(fp8_linear_bias_residual_bf16=adds))  # type: ignore[arg-type]
    residual = torch.randn(4, 16, dtype=torch.bfloat16)
    kept = residual.clone()
    assert torch.equal(view.run(torch.randn(4, 32), residual), kept + 1)
    assert torch.equal(residual, kept)


def test_only_tensors_and_numbers_are_kept() -> None:
    impl = Base()
    impl.keep("nothing", None)
    with pytest.raises(TypeError, match="records is a dict"):
        impl.keep("records", {})  # type: ignore[arg-type]


def test_swizzled_by_hand() -> None:
    """Row r, block c: tile (r // 128, c // 4), in it 16 * (r % 32) + 4 * (r % 128 // 32) + c % 4."""
    scale = torch.randint(0, 127, (2, 200, 6), dtype=torch.uint8)
    for stack in (scale[0], scale):
        found = numerics.swizzled(stack.view(torch.float8_e4m3fn))
        wanted = torch.zeros(*stack.shape[:-2], 2 * 2 * 512, dtype=torch.uint8)
        for r in range(200):
            for c in range(6):
                tile = (r // 128) * 2 + c // 4
                at = tile * 512 + 16 * (r % 32) + 4 * (r % 128 // 32) + c % 4
                wanted[..., at] = stack[..., r, c]
        assert torch.equal(found, wanted)
