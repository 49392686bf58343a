"""The emulation of an impl against calculation by hand, and the library rung against it."""

from __future__ import annotations

import inspect
import math
import struct
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from codegen_kit import ROOT, importable, module_of, program_of, written
from flashrt_gen.impls.decoder_ffn_fp8_static import DecoderFfnFp8Static
from flashrt_gen.impls.linear_proj_fp8_static import LinearProjFp8Static
from flashrt_gen.impls.modnorm_qkv_chain_v3_fp8_static import ModnormQkvChainV3Fp8Static
from flashrt_gen.impls.norm_fused_bf16 import NormFusedBf16
from flashrt_gen.impls.qkv_pack_fp8_static import QkvPackFp8Static
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.nn import functional as nnf

from frtspec.codegen.implview import impl_view
from frtspec.codegen.pyfmt import format_python
from frtspec.codegen.render import render
from frtspec.codegen.unsupported import Unsupported
from frtspec.runtime import numerics

SLOW_BOX = settings(deadline=None, max_examples=25)

# ---------------------------------------------------------------- by hand


def e4m3_values() -> list[float]:
    """Every finite value of the format, from its fields: sign, 4 exponent, 3 mantissa bits."""
    out = []
    for code in range(128):
        exponent, mantissa = code >> 3, code & 7
        if code == 0x7F:
            continue  # the one NaN
        if exponent == 0:
            out.append(mantissa * 2.0**-9)
        else:
            out.append((1 + mantissa / 8) * 2.0 ** (exponent - 7))
    return out


GRID = e4m3_values()


def e4m3(value: float) -> float:
    """The nearest value of the format, ties to the even code, saturated."""
    magnitude = min(abs(value), GRID[-1])
    code = min(range(len(GRID)), key=lambda c: (abs(GRID[c] - magnitude), c % 2))
    return math.copysign(GRID[code], value)


def through(value: float, scale: float) -> float:
    """What is left of a value after the format."""
    return e4m3(value / scale) * scale


def bf16(value: float) -> float:
    """The nearest bfloat16, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", value))[0]
    bits += 0x7FFF + ((bits >> 16) & 1)
    return struct.unpack("<f", struct.pack("<I", bits & 0xFFFF0000))[0]


def rows_of(x: Tensor) -> list[list[float]]:
    return [[float(v) for v in row] for row in x]


def product(x: list[list[float]], w: list[list[float]]) -> list[list[float]]:
    """[M, K] @ [K, N] in Python floats."""
    return [
        [math.fsum(a * w[k][n] for k, a in enumerate(row)) for n in range(len(w[0]))] for row in x
    ]


def grid_weight(rows: int, columns: int, seed: int, top: float = 7.0) -> Tensor:
    """A weight whose largest magnitude is ``top``: with 7 its scale is 1/64, exact."""
    generator = torch.Generator().manual_seed(seed)
    w = torch.randint(-6, 7, (rows, columns), generator=generator).float() / 2
    w[0, 0] = top
    return w


def small(rows: int, columns: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(-20, 21, (rows, columns), generator=generator).float() / 16


@pytest.mark.parametrize("activation", ["gelu", "silu"])
def test_the_ffn_by_hand(activation: str) -> None:
    """Sizes and scales make every float32 sum exact, so that the two agree bit for bit."""
    d, f, in_s, hid_s = 4, 6, 2.0**-5, 2.0**-4
    x, w_gate, w_up = small(3, d, 0), grid_weight(d, f, 1), grid_weight(d, f, 2)
    w_down = grid_weight(f, d, 3)
    impl = DecoderFfnFp8Static(
        w_gate=w_gate,
        w_up=w_up,
        w_down=w_down,
        in_s=torch.tensor([in_s]),
        hid_s=torch.tensor([hid_s]),
        activation=activation,
    )
    quantised = [
        [[through(v, 7 / 448) for v in row] for row in rows_of(w)] for w in (w_gate, w_up, w_down)
    ]
    x_q = [[through(v, in_s) for v in row] for row in rows_of(x)]
    g = [[bf16(v) for v in row] for row in product(x_q, quantised[0])]
    u = [[bf16(v) for v in row] for row in product(x_q, quantised[1])]
    act = {"gelu": lambda t: nnf.gelu(t, approximate="tanh"), "silu": nnf.silu}[activation]
    hidden = act(torch.tensor(g)) * torch.tensor(u)
    hidden_q = [[through(v, hid_s) for v in row] for row in rows_of(hidden)]
    o = [[bf16(v) for v in row] for row in product(hidden_q, quantised[2])]
    assert rows_of(impl.run_emulate(x)) == o
    assert rows_of(impl.run_torch(x)) == o
    assert impl.run_emulate(x).dtype == torch.bfloat16


@pytest.mark.parametrize("bias", ["none", "add"])
def test_the_projection_by_hand(bias: str) -> None:
    """The bias is added in float32 and the sum rounded once."""
    x, w = small(40, 16, 0), grid_weight(16, 3, 1)
    b = torch.tensor([0.3, 100.0, -7.0]) if bias == "add" else None
    impl = LinearProjFp8Static(w=w, b=b, in_s=torch.tensor([2.0**-5]), bias=bias, epilogue="none")
    x_q = [[through(v, 2.0**-5) for v in row] for row in rows_of(x)]
    w_q = [[through(v, 7 / 448) for v in row] for row in rows_of(w)]
    y = torch.tensor(product(x_q, w_q), dtype=torch.float32)
    y = y if b is None else y + b
    expected = [[bf16(float(v)) for v in row] for row in y]
    assert rows_of(impl.run_emulate(x)) == expected
    assert rows_of(impl.run_torch(x)) == expected
    if b is not None:
        twice = [
            [bf16(bf16(float(v - c)) + float(c)) for v, c in zip(r, b, strict=True)] for r in y
        ]
        assert twice != expected, "the example has to tell one rounding from two"


def test_siblings_by_hand() -> None:
    """One scale for all three weights: that of the largest magnitude among them."""
    x = small(4, 4, 0)
    w = [grid_weight(4, n, n, top) for n, top in ((5, 7.0), (2, 3.5), (3, 1.0))]
    b = [small(1, n, n)[0] for n in (5, 2, 3)]
    impl = QkvPackFp8Static(w=w, b=b, in_s=torch.tensor([2.0**-5]), bias="add")
    x_q = [[through(v, 2.0**-5) for v in row] for row in rows_of(x)]
    for k, (emulated, library) in enumerate(
        zip(impl.run_emulate(x), impl.run_torch(x), strict=True)
    ):
        w_q = [[through(v, 7 / 448) for v in row] for row in rows_of(w[k])]
        y = torch.tensor(product(x_q, w_q), dtype=torch.float32) + b[k]
        expected = [[bf16(float(v)) for v in row] for row in y]
        assert rows_of(emulated) == rows_of(library) == expected


def test_the_norm_by_hand() -> None:
    x, w, b = torch.randn(3, 8) * 2 + 1, torch.randn(8), torch.randn(8)
    impl = NormFusedBf16(w=w, b=b, eps=1e-6)
    expected = nnf.layer_norm(x, (8,), w, b, 1e-6).bfloat16()
    torch.testing.assert_close(impl.run_emulate(x), expected, rtol=1e-2, atol=1e-2)
    torch.testing.assert_close(impl.run_torch(x), expected, rtol=1e-2, atol=1e-2)


# ---------------------------------------------------------------- the library rung

IMPLS = {
    "ffn": lambda m, k, n: DecoderFfnFp8Static(
        w_gate=torch.randn(k, n) * k**-0.5,
        w_up=torch.randn(k, n) * k**-0.5,
        w_down=torch.randn(n, k) * n**-0.5,
        in_s=numerics.fp8_scale(3.0),
        hid_s=numerics.fp8_scale(2.0),
        activation="silu",
    ),
    "linear": lambda m, k, n: LinearProjFp8Static(
        w=torch.randn(k, n),
        b=torch.randn(n),
        in_s=numerics.fp8_scale(3.0),
        bias="add",
        epilogue="none",
    ),
    "qkv": lambda m, k, n: QkvPackFp8Static(
        w=[torch.randn(k, n), torch.randn(k, 16)], in_s=numerics.fp8_scale(3.0), bias="none"
    ),
}


@pytest.mark.parametrize("name", IMPLS)
@SLOW_BOX
@given(m=st.integers(1, 40), k=st.integers(1, 6), n=st.integers(1, 6), seed=st.integers(0, 999))
def test_the_library_rung_is_the_emulation(name: str, m: int, k: int, n: int, seed: int) -> None:
    """Sums in another order: at most a last bit of bfloat16 apart, times the next product."""
    torch.manual_seed(seed)
    impl = IMPLS[name](m, 16 * k, 16 * n)
    x = torch.randn(m, 16 * k)
    ours, emulated = impl.run_torch(x), impl.run_emulate(x)
    pairs = zip(ours, emulated, strict=True) if isinstance(ours, tuple) else [(ours, emulated)]
    for library, plain in pairs:
        assert library.dtype == plain.dtype == torch.bfloat16
        torch.testing.assert_close(library, plain, rtol=2e-2, atol=2e-2)


def test_a_pack_of_several_weights_is_one_product(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, ...]] = []
    real = numerics.scaled_mm

    def counted(x: Tensor, w: Tensor, *args: Any, **options: Any) -> Tensor:
        calls.append(tuple(w.shape))
        return real(x, w, *args, **options)

    monkeypatch.setattr(numerics, "scaled_mm", counted)
    IMPLS["ffn"](1, 32, 48).run_torch(torch.randn(2, 32))
    assert calls == [(96, 32), (32, 48)]
    calls.clear()
    IMPLS["qkv"](1, 32, 48).run_torch(torch.randn(2, 32))
    assert calls == [(64, 32)]


# ---------------------------------------------------------------- kernels


def kernel(**entries: Any) -> SimpleNamespace:
    return SimpleNamespace(**entries)


@pytest.mark.parametrize(
    ("activation", "entry"),
    [("gelu", "bf16_fp8_geglu_mlp_bf16"), ("silu", "bf16_fp8_swiglu_mlp_bf16")],
)
def test_the_kernel_gets_what_the_spec_hands_it(activation: str, entry: str) -> None:
    impl = IMPLS["ffn"](1, 32, 48)
    impl.activation = activation
    seen: list[Any] = []
    impl.kernel = kernel(**{entry: lambda *args: seen.append(args) or "the result"})
    x = torch.randn(2, 32)
    assert impl.run_hub(x) == "the result"
    ((handed, gate_up, down, in_s, gate_up_scale, hid_s, down_scale),) = seen
    assert handed.dtype == torch.bfloat16 and torch.equal(handed, x.bfloat16())
    assert gate_up is impl.gate_up and gate_up.shape == (96, 32)
    assert gate_up.dtype == torch.float8_e4m3fn and down is impl.down
    assert (in_s, gate_up_scale) == (impl.in_s, impl.gate_up_scale)
    assert (hid_s, down_scale) == (impl.hid_s, impl.down_scale)


@pytest.mark.parametrize(
    ("bias", "entry"), [("none", "fp8_gemm_bf16"), ("add", "bf16_fp8_linear_bias_bf16")]
)
def test_each_entry_has_its_own_arguments(bias: str, entry: str) -> None:
    b = torch.randn(48) if bias == "add" else None
    impl = LinearProjFp8Static(
        w=torch.randn(32, 48), b=b, in_s=numerics.fp8_scale(3.0), bias=bias, epilogue="none"
    )
    seen: list[Any] = []
    impl.kernel = kernel(**{entry: lambda *args: seen.append(args)})
    impl.run_hub(torch.randn(2, 32))
    (handed,) = seen
    assert handed[0].dtype == (torch.float8_e4m3fn if bias == "none" else torch.bfloat16)
    assert len(handed) == (4 if bias == "none" else 5)


def test_a_bias_that_the_variant_needs_has_to_be_there() -> None:
    with pytest.raises(ValueError, match="b is needed where bias is add"):
        LinearProjFp8Static(w=torch.randn(4, 4), in_s=torch.ones(1), bias="add", epilogue="none")


def test_what_is_not_served_is_not_asked_for() -> None:
    """The table belongs to a modulation that this impl does not serve."""
    run = inspect.signature(ModnormQkvChainV3Fp8Static.run_emulate).parameters
    assert list(run) == ["self", "x", "cond"]
    packed = inspect.signature(ModnormQkvChainV3Fp8Static.__init__).parameters
    assert not {"modulation", "steps", "w_up"} & {*packed}


@pytest.mark.parametrize("epilogue", ["gelu", "residual_add"])
def test_an_epilogue_comes_after_the_bias_in_float32(epilogue: str) -> None:
    x, w, b, residual = torch.randn(4, 32), torch.randn(32, 16), torch.randn(16), torch.randn(4, 16)
    impl = LinearProjFp8Static(
        w=w, b=b, in_s=numerics.fp8_scale(3.0), bias="add", epilogue=epilogue
    )
    plain = (
        numerics.fp8_round_trip(x, impl.in_s) @ numerics.fp8_round_trip(w, impl.weight_scale) + b
    )
    wanted = nnf.gelu(plain, approximate="tanh") if epilogue == "gelu" else plain + residual
    for run in (impl.run_emulate, impl.run_torch):
        torch.testing.assert_close(run(x, residual), wanted.bfloat16(), rtol=1e-2, atol=1e-2)
    if epilogue == "residual_add":
        with pytest.raises(ValueError, match="residual is needed where epilogue is residual_add"):
            impl.run_emulate(x)


# ---------------------------------------------------------------- other shapes of impls


def impls_of(*texts: str) -> dict[str, ModuleType]:
    """The generated module of each impl in some spec texts, by the impl's name."""
    program = program_of(*texts)
    out = {}
    for impl in program.impls.values():
        raw = render("impl.py.j2", impl_view(program.structures[impl.structure], impl, "Impl"))
        name = f"generated_impl_{impl.name}"
        out[impl.name] = module_of(format_python(raw, name), name)
    return out


@pytest.fixture(scope="module")
def rungs() -> dict[str, ModuleType]:
    return impls_of((ROOT / "tests" / "codegen" / "golden" / "rungs" / "spec.frt").read_text())


def test_weights_alone_in_int8(rungs: dict[str, ModuleType]) -> None:
    """One scale an output channel, activations untouched, the named store rounded."""
    x, w, b = torch.randn(3, 8), torch.randn(8, 5), torch.randn(5)
    impl = rungs["int8_weights"].Impl(w=w, b=b, bias="add")
    scale = w.abs().amax(0) / 127
    w_q = (w / scale).round().clamp(-127, 127) * scale
    expected = (x @ w_q + b).half()
    torch.testing.assert_close(impl.run_emulate(x), expected, rtol=2e-3, atol=2e-3)
    assert impl.w8.dtype == torch.int8 and impl.w8.shape == (5, 8)
    assert impl.w8_scale.shape == (5, 1)


def test_keywords_dims_and_numbers_of_a_call(rungs: dict[str, ModuleType]) -> None:
    impl = rungs["int8_weights"].Impl(w=torch.randn(32, 5), bias="none")
    seen: dict[str, Any] = {}
    impl.kernel = kernel(run=lambda x, **named: seen.update(named))
    impl.run_hub(torch.randn(3, 32))
    assert seen["m"] == 3 and seen["w"] is impl.w8 and seen["s"] is impl.w8_scale
    with_bias = rungs["int8_weights"].Impl(w=torch.randn(32, 5), b=torch.randn(5), bias="add")
    handed: list[Any] = []
    with_bias.kernel = kernel(run_bias=lambda *args: handed.append(args))
    with_bias.run_hub(torch.randn(3, 32))
    assert handed[0][0].dtype == handed[0][3].dtype == torch.float16 and handed[0][4] == 1


def test_a_band_and_its_rung(rungs: dict[str, ModuleType]) -> None:
    spec = rungs["fp8_rows"].Impl.SPEC
    (band,) = spec.bands
    assert (band.dim, band.lo, band.hi) == ("M", 1, 8)
    assert band.rungs[0].run == "run_local" and band.rungs[0].package == "frt-gemv"
    impl = rungs["fp8_rows"].Impl(w=torch.randn(16, 5), in_s=numerics.fp8_scale(3.0))
    handed: list[Any] = []
    impl.kernel = kernel(gemv=lambda *args: handed.append(args))
    impl.run_local(torch.randn(3, 16))
    assert handed[0][0].dtype == torch.float8_e4m3fn and handed[0][3].shape == (5, 1)


CALLS = """frt 1

structure s version 1 {
  dim M, D, F
  in  x [rows M, D] : host
  out y [rows M, F] : host
  slot w [D, F]
  reference {
    point x_in = x
    yield y = x_in @ w
  }
}

impl eight for s version 1 {
  pack  weight = quantize(w.T, int8, per channel)
  scale in_s   = dynamic(x_in, per row)
  rung local "ours" version 1 {
    call gemm (quantize(x_in, int8, in_s), in_s, weight, weight.scale)
  }
  rung emulate
}

impl four for s version 1 {
  pack  weight = quantize(w.T, nvfp4, per block 16)
  scale in_s   = dynamic(x_in, per block 16)
  rung local "ours" version 1 {
    call gemm (quantize(x_in, nvfp4, in_s), in_s, weight, weight.scale, s = weight.tensor_scale)
  }
  rung emulate
}
"""


def test_a_call_gets_the_codes_and_scales_that_it_makes() -> None:
    x, w, made = torch.randn(3, 32), torch.randn(32, 16), impls_of(CALLS)
    eight, four = made["eight"].Impl(w=w), made["four"].Impl(w=w)
    handed: list[Any] = []
    for impl in (eight, four):
        impl.kernel = kernel(gemm=lambda *args, **named: handed.append((args, named)))
        impl.run_local(x)
    wanted = numerics.quantize_int8(x, per="row")
    (codes, scale, weight, weight_scale), none = handed[0]
    assert torch.equal(codes, wanted.data) and torch.equal(scale, wanted.scale) and not none
    assert codes.dtype == torch.int8 and scale.shape == (3, 1)
    assert weight is eight.weight and weight_scale is eight.weight_scale
    (codes, scale, _, _), named = handed[1]
    blocks = numerics.quantize_nvfp4_one_level(x)
    assert torch.equal(codes, blocks.data)
    assert torch.equal(scale.view(torch.uint8), blocks.scale.view(torch.uint8))
    assert named["s"] is four.weight_tensor_scale and named["s"].dtype == torch.float32


TWO = """frt 1

structure two version 1 {{
  dim M, K, N, P
  in  a [rows M, K] : host
  in  c [rows M, K] : host
  out y [rows M, N] : host
  out z [rows M, P] : host
  slot v [K, N]
  slot w [K, P]
  reference {{
    point a_in = a
    point c_in = c
    {body}
  }}
}}

impl fp8 for two version 1 {{
  pack  both = quantize(cat(v.T, w.T), fp8_e4m3, per tensor)
  scale a_s  = static(a_in)
  scale c_s  = static(c_in)
  numerics {{ acc f32, {numerics} }}
  admits a_in {{ bf16 }}
  rung torch {{ lower matmul to scaled_mm }}
  rung emulate
}}
"""

APART = "yield y = cast(f32(a_in) @ f32(v), a)  yield z = cast(f32(c_in) @ f32(w), a)"
TOGETHER = """let p = f32(a_in) @ f32(v)
    let q = f32(a_in) @ f32(w)
    point keep = cast(f32(c_in), a)
    yield y = cast(p, a)
    yield z = cast(q + q + f32(keep) @ f32(w) * 0, a)"""


def two_by_hand(impl: Any, a: Tensor, c: Tensor, v: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    packed = numerics.quantize_fp8(torch.cat([v.T, w.T]))
    v_q, w_q = numerics.dequantize(*packed).split([v.shape[1], w.shape[1]])
    a_q = numerics.fp8_round_trip(a, impl.a_s)
    c_q = numerics.fp8_round_trip(c, impl.c_s)
    return (a_q @ v_q.T).bfloat16(), (c_q @ w_q.T).bfloat16()


def two_inputs() -> tuple[Tensor, ...]:
    torch.manual_seed(0)
    return torch.randn(3, 16), torch.randn(3, 16), torch.randn(16, 32), torch.randn(16, 48)


def test_a_pack_used_in_parts() -> None:
    """Each part meets another operand, so each is a product of its own rows."""
    impl_class = impls_of(TWO.format(body=APART, numerics="out bf16"))["fp8"].Impl
    a, c, v, w = two_inputs()
    impl = impl_class(v=v, w=w, a_s=numerics.fp8_scale(3.0), c_s=numerics.fp8_scale(2.0))
    expected = two_by_hand(impl, a, c, v, w)
    for got in (impl.run_emulate(a, c), impl.run_torch(a, c)):
        for ours, hand in zip(got, expected, strict=True):
            torch.testing.assert_close(ours, hand, rtol=1e-2, atol=1e-2)


def test_a_result_that_is_read_again_is_rounded_last() -> None:
    text = """frt 1

structure chain version 1 {
  dim M, K
  in  x [rows M, K] : host
  out y [rows M, K] : host
  slot w [K, K]
  reference {
    point x_in = x
    let p = x_in @ w
    let q = p + p * 3
    yield y = q
  }
  seam cut { from x_in to (p, q) }
}

impl fp8 for chain.cut version 1 {
  pack  w8 = quantize(w.T, fp8_e4m3, per tensor)
  scale s  = static(x_in)
  numerics { acc f32, out bf16 }
  admits x_in { f32 }
  rung torch { lower matmul to scaled_mm }
  rung emulate
}
"""
    impl = impls_of(text)["fp8"].Impl(w=torch.randn(16, 16), s=numerics.fp8_scale(3.0))
    x = torch.randn(4, 16)
    p = numerics.fp8_round_trip(x, impl.s) @ numerics.dequantize(impl.w8, impl.w8_scale).T
    for run in (impl.run_emulate, impl.run_torch):
        got_p, got_q = run(x)
        assert got_p.dtype == got_q.dtype == torch.bfloat16
        torch.testing.assert_close(got_p, p.bfloat16(), rtol=1e-2, atol=1e-2)
        torch.testing.assert_close(got_q, (p + p * 3).bfloat16(), rtol=1e-2, atol=1e-2)


def test_the_store_of_a_value_defined_in_steps_is_its_last() -> None:
    text = """frt 1

structure steps version 1 {
  dim M, K
  in  x [rows M, K] : host
  out y [rows M, K] : host
  slot w [K, K]
  variant twice { no, yes }
  reference {
    point x_in = x
    let p = f32(x_in) @ f32(w)
    let p = p * 3  when twice is yes
    yield y = cast(p + 1, x)
  }
}

impl fp8 for steps version 1 {
  pack  w8 = quantize(w.T, fp8_e4m3, per tensor)
  scale s  = static(x_in)
  numerics { acc f32, store p fp16, out bf16 }
  admits x_in { f32 }
  rung torch { lower matmul to scaled_mm }
  rung emulate
}
"""
    for twice, factor in (("no", 1), ("yes", 3)):
        impl = impls_of(text)["fp8"].Impl(
            w=torch.randn(16, 16), s=numerics.fp8_scale(3.0), twice=twice
        )
        x = torch.randn(4, 16)
        p = numerics.fp8_round_trip(x, impl.s) @ numerics.dequantize(impl.w8, impl.w8_scale).T
        expected = ((p * factor).half().float() + 1).bfloat16()
        for run in (impl.run_emulate, impl.run_torch):
            torch.testing.assert_close(run(x), expected, rtol=1e-2, atol=1e-2)


def test_arithmetic_without_a_generator() -> None:
    text = TWO.format(body=APART, numerics="out bf16").replace("acc f32", "acc bf16")
    with pytest.raises(Unsupported, match="accumulation in bf16"):
        impls_of(text)


def test_a_repeated_matrix_that_is_not_packed_has_no_generator() -> None:
    structure = (ROOT / "specs/structures/qkv_pack/v1.frt").read_text("utf-8")
    impl = "frt 1\nimpl bare for qkv_pack version 1 {\n  rung emulate\n}\n"
    with pytest.raises(Unsupported, match="`w`, repeated and not packed"):
        impls_of(structure, impl)


# ---------------------------------------------------------------- gate harnesses


def test_a_gate_harness_finds_a_wrong_impl(tmp_path: Any) -> None:
    """Gate and up swapped: the seam's own gate sees it where the residual would hide it."""
    from flashrt_gen.gates import decoder_ffn_v1

    class Swapped(DecoderFfnFp8Static):
        def run_emulate(self, x_after_norm: Tensor) -> Tensor:
            self.gate_up_rows = list(reversed(self.gate_up_rows))
            half = self.gate_up.shape[0] // 2
            swapped = torch.cat([self.gate_up[half:], self.gate_up[:half]])
            kept, self.gate_up = self.gate_up, swapped
            try:
                return super().run_emulate(x_after_norm)
            finally:
                self.gate_up = kept

    results = decoder_ffn_v1.run(Swapped)
    assert {result.verdict for result in results} == {"fail"}
    assert "seam: cosine" in results[0].reason


def test_a_gate_harness_never_passes_a_nan() -> None:
    from flashrt_gen.gates import linear_proj_v1

    class Broken(LinearProjFp8Static):
        def run_emulate(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
            return super().run_emulate(x, residual) * float("nan")

    served = [r for r in linear_proj_v1.run(Broken) if r.verdict != "not_applicable"]
    assert {result.verdict for result in served} == {"failed"}
    assert "NaN" in served[0].reason


def test_a_gate_harness_is_a_program(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    import runpy

    text = (ROOT / "tests" / "codegen" / "golden" / "rungs" / "spec.frt").read_text()
    written(program_of(text), tmp_path, package="made_here")
    with importable(tmp_path, "made_here"), pytest.raises(SystemExit) as left:
        runpy.run_module("made_here.gates.proj_v1", run_name="__main__", alter_sys=True)
    assert left.value.code == 0
    assert " pass, 0 fail, 0 failed" in capsys.readouterr().out
