"""Calls of the dense package beside the emulation of the impls that they stand for."""

from __future__ import annotations

from types import ModuleType

import torch
from flashrt_gen.impls.decoder_ffn_fp8_static import DecoderFfnFp8Static
from flashrt_gen.impls.decoder_ffn_w4a16_int4 import DecoderFfnW4a16Int4
from flashrt_gen.impls.decoder_ffn_w8a16_static import DecoderFfnW8a16Static
from flashrt_gen.impls.linear_proj_fp8_static import LinearProjFp8Static
from flashrt_gen.impls.vision_ffn_v3_fp8_static import VisionFfnV3Fp8Static
from torch import Tensor

from frtspec.runtime import numerics
from frtspec.runtime.spec import Route, SchemeSpec, Stat

AMAX = Stat("amax", "tensor")
SCHEME = SchemeSpec(
    name="fp8_static",
    source_digest="0" * 64,
    contract_digest="0" * 64,
    routes=(
        Route(
            "decoder_ffn",
            "mlp",
            {"x_after_norm": AMAX, "act_after_mul": AMAX},
            DecoderFfnFp8Static,
        ),
    ),
    otherwise="only feed-forward blocks here",
)
"""Feed-forward blocks by the catalog's impl."""

FFN = ("fp8", "int8", "int4")
ACTIVATIONS = {"silu": "swiglu", "gelu": "geglu"}
ENTRY = {"fp8": "fp8", "int8": "w8a16", "int4": "w4a16"}
IMPL = {"int8": DecoderFfnW8a16Static, "int4": DecoderFfnW4a16Int4}


def rel_l2(found: Tensor, wanted: Tensor) -> float:
    """||found - wanted|| / ||wanted||; infinite where either holds a NaN."""
    gap = (found.double() - wanted.double()).norm() / wanted.double().norm().clamp(min=1e-30)
    return float(gap) if bool(torch.isfinite(gap)) else float("inf")


def randn(*shape: int, seed: int, device: str = "cpu") -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(device)


def ffn(
    kit: ModuleType, fmt: str, activation: str, m: int, d: int, f: int, *, seed: int = 0,
    device: str = "cpu", zero_rows: bool = False, scale: float | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(the package's result, the emulation's) of a gated FFN on random weights.

    zero_rows  some rows of x and of the weights are zero
    scale      of x, where it is not to be what x needs (FP8 only)
    """
    x = randn(m, d, seed=seed, device=device).bfloat16()
    gate, up = (randn(d, f, seed=seed + n, device=device) * d**-0.5 for n in (1, 2))
    down = randn(f, d, seed=seed + 3, device=device) * f**-0.5
    if zero_rows:
        x[::2], gate[:, ::3], down[:, 1::2] = 0, 0, 0
    weights = {"w_gate": gate, "w_up": up, "w_down": down}
    entry = getattr(kit, f"{ENTRY[fmt]}_{ACTIVATIONS[activation]}")
    if fmt != "fp8":
        impl = IMPL[fmt](**weights, activation=activation)
        got = entry(x, impl.gate_up, impl.gate_up_scale, impl.down, impl.down_scale)
        return got, impl.run_emulate(x)
    in_s = numerics.fp8_scale(torch.tensor(4.0)) if scale is None else torch.tensor([scale])
    fp8 = DecoderFfnFp8Static(
        **weights,
        in_s=in_s.to(device),
        hid_s=numerics.fp8_scale(torch.tensor(3.0)).to(device),
        activation=activation,
    )
    got = entry(
        x, fp8.gate_up, fp8.down, fp8.in_s, fp8.gate_up_scale, fp8.hid_s, fp8.down_scale
    )  # fmt: skip
    return got, fp8.run_emulate(x)


def linear(
    kit: ModuleType, fmt: str, m: int, k: int, n: int, *, bias: bool, seed: int = 0,
    device: str = "cpu",
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(the package's result, the emulation's arithmetic) of a projection."""
    x = randn(m, k, seed=seed, device=device).bfloat16()
    w = (randn(n, k, seed=seed + 1, device=device) * k**-0.5).contiguous()
    b = randn(n, seed=seed + 2, device=device).bfloat16() if bias else None
    plus = 0 if b is None else b.float()
    if fmt == "fp8":
        in_s = numerics.fp8_scale(x.abs().max() if m else torch.tensor(1.0)).to(device)
        impl = LinearProjFp8Static(
            w=w.T, b=b, in_s=in_s, bias="add" if bias else "none", epilogue="none"
        )
        got = kit.fp8_linear(x, impl.weight, impl.in_s, impl.weight_scale, b)
        wanted = numerics.fp8_round_trip(x, impl.in_s) @ numerics.dequantize(
            impl.weight, impl.weight_scale
        ).T  # fmt: skip
        return got, (wanted + plus).bfloat16()
    make = numerics.quantize_int8(w) if fmt == "int8" else numerics.quantize_int4(w, 64)
    read = numerics.dequantize if fmt == "int8" else numerics.dequantize_int4
    got = getattr(kit, f"{ENTRY[fmt]}_linear")(x, make.data, make.scale, b)
    return got, (x.float() @ read(make.data, make.scale).T + plus).bfloat16()


def plain_ffn(
    kit: ModuleType, m: int, d: int, f: int, *, device: str = "cpu"
) -> tuple[Tensor, Tensor]:
    """(the package's result, the emulation's) of a vision FFN with tanh-GELU and biases."""
    x = randn(m, d, seed=m, device=device).bfloat16()
    impl = VisionFfnV3Fp8Static(
        w_fc1=randn(d, f, seed=1, device=device) * d**-0.5,
        b_fc1=randn(f, seed=2, device=device).bfloat16(),
        w_fc2=randn(f, d, seed=3, device=device) * f**-0.5,
        b_fc2=randn(d, seed=4, device=device).bfloat16(),
        in_s=numerics.fp8_scale(torch.tensor(4.0)).to(device),
        hid_s=numerics.fp8_scale(torch.tensor(4.0)).to(device),
        activation="gelu_tanh",
        bias="add",
        d=d,
        f=f,
    )
    view = impl.on(impl.SPEC.rungs[0], kit)
    return view.run_local(x), impl.run_emulate(x)
