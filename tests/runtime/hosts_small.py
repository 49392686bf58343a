"""Small stand-in hosts and the facts that generated code would hand to the runtime.

One decoder family with every kind of seat in it, small enough to run in
milliseconds on a CPU:

    ffn[i]    decoder_ffn.mlp v1   layers.{i}.mlp               swap, full boundary
    o[i]      linear_proj v1       layers.{i}.self_attn.o_proj  swap
    qkv[i]    qkv_pack v1          layers.{i}.self_attn         siblings q/k/v
    norm[i]   norm_fused v1        layers.{i}.input_layernorm   swap, LayerNorm

Structures, impls, schemes and the binding below are written by hand in the shape
of generated code, so that tests of the runtime need no compiler.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as nnf

from frtspec.dims import at_least, dims, divides, rows
from frtspec.runtime import numerics, ops
from frtspec.runtime.eligibility.rules import qualify
from frtspec.runtime.hosts.host import exact_div, first, get
from frtspec.runtime.rungs.impl import BoundImpl
from frtspec.runtime.spec import (
    Bound,
    Boundary,
    Expect,
    Host,
    HostBinding,
    ImplSpec,
    InputOf,
    OutputOf,
    Route,
    RungSpec,
    ScaleSpec,
    SchemeSpec,
    SeamSpec,
    Seat,
    Siblings,
    Stat,
    StructureSpec,
    Weight,
    choose,
)

DIGEST = "0" * 64

# ---------------------------------------------------------------- the host


class TinyConfig:
    """Sizes of a TinyDecoder, under the names that transformers uses."""

    def __init__(self, **overrides: Any) -> None:
        self.vocab_size = 97
        self.hidden_size = 32
        self.intermediate_size = 64
        self.num_hidden_layers = 2
        self.num_attention_heads = 4
        self.num_key_value_heads = 2
        self.hidden_act = "silu"
        self.rms_norm_eps = 1e-6
        self.attention_bias = False
        self.mlp_dropout = 0.0
        for name, value in overrides.items():
            setattr(self, name, value)


class TinyRMSNorm(nn.Module):
    """Rounds to the input's dtype before the weight, as Llama and Qwen do."""

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.variance_epsilon = eps

    def forward(self, hidden_states: Tensor) -> Tensor:
        x = hidden_states.float()
        x = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * x.to(hidden_states.dtype)


class TinyMLP(nn.Module):
    def __init__(self, config: TinyConfig) -> None:
        super().__init__()
        wide, narrow = config.intermediate_size, config.hidden_size
        self.gate_proj = nn.Linear(narrow, wide, bias=False)
        self.up_proj = nn.Linear(narrow, wide, bias=False)
        self.down_proj = nn.Linear(wide, narrow, bias=False)
        self.act_fn: nn.Module = {"silu": nn.SiLU(), "gelu_pytorch_tanh": nn.GELU("tanh")}.get(
            config.hidden_act, nn.ReLU()
        )
        self.dropout = nn.Dropout(config.mlp_dropout)

    def forward(self, x: Tensor, gain: float = 1.0) -> Tensor:
        hidden = self.act_fn(self.gate_proj(x)) * self.up_proj(x)
        return self.dropout(self.down_proj(hidden)) * gain


class TinyAttention(nn.Module):
    """Causal attention; every argument arrives by keyword, two values go back."""

    def __init__(self, config: TinyConfig) -> None:
        super().__init__()
        self.heads = config.num_attention_heads
        self.kv_heads = config.num_key_value_heads
        self.head_dim = config.hidden_size // config.num_attention_heads
        size, bias = config.hidden_size, config.attention_bias
        self.q_proj = nn.Linear(size, self.heads * self.head_dim, bias=bias)
        self.k_proj = nn.Linear(size, self.kv_heads * self.head_dim, bias=bias)
        self.v_proj = nn.Linear(size, self.kv_heads * self.head_dim, bias=bias)
        self.o_proj = nn.Linear(self.heads * self.head_dim, size, bias=False)

    def forward(self, *, hidden_states: Tensor, **kwargs: Any) -> tuple[Tensor, None]:
        lead = hidden_states.shape[:-1]
        q = self.q_proj(hidden_states).view(*lead, -1, self.head_dim).transpose(1, 2)
        k = self.k_proj(hidden_states).view(*lead, -1, self.head_dim).transpose(1, 2)
        v = self.v_proj(hidden_states).view(*lead, -1, self.head_dim).transpose(1, 2)
        groups = self.heads // self.kv_heads
        k, v = k.repeat_interleave(groups, 1), v.repeat_interleave(groups, 1)
        mixed = nnf.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.o_proj(mixed.transpose(1, 2).reshape(*lead, -1)), None


class TinyLayer(nn.Module):
    def __init__(self, config: TinyConfig) -> None:
        super().__init__()
        self.self_attn = TinyAttention(config)
        self.mlp = TinyMLP(config)
        self.input_layernorm = nn.LayerNorm(config.hidden_size, eps=1e-6)
        self.post_attention_layernorm = TinyRMSNorm(config.hidden_size, config.rms_norm_eps)

    def forward(self, hidden_states: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        attended, _ = self.self_attn(
            hidden_states=self.input_layernorm(hidden_states), attention_mask=attention_mask
        )
        hidden_states = hidden_states + attended
        return hidden_states + self.mlp(self.post_attention_layernorm(hidden_states))


class TinyDecoder(nn.Module):
    """token ids [B, S] -> logits [B, S, vocab]."""

    def __init__(self, config: TinyConfig) -> None:
        super().__init__()
        self.config = config
        self.embed_tokens = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(TinyLayer(config) for _ in range(config.num_hidden_layers))
        self.norm = TinyRMSNorm(config.hidden_size, config.rms_norm_eps)
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)

    def forward(self, input_ids: Tensor) -> Tensor:
        hidden = self.embed_tokens(input_ids)
        for layer in self.layers:
            hidden = layer(hidden, attention_mask=None)
        return self.lm_head(self.norm(hidden))


def tiny_decoder(seed: int = 0, **overrides: Any) -> TinyDecoder:
    """A TinyDecoder in eval mode with weights spread like a trained model's."""
    torch.manual_seed(seed)
    model = TinyDecoder(TinyConfig(**overrides)).eval()
    with torch.no_grad():
        for name, param in model.named_parameters():
            if param.dim() == 1 and name.endswith("norm.weight"):
                param.copy_(1 + 0.1 * torch.randn_like(param))
    return model


def token_batches(
    count: int = 3, *, batch: int = 2, length: int = 7, seed: int = 1
) -> list[Tensor]:
    """``count`` batches of token ids [batch, length]."""
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(0, 97, (batch, length), generator=generator) for _ in range(count)]


# ---------------------------------------------------------------- structures

M, D, F, K, N, N_i = dims("M", "D", "F", "K", "N", "N[i]")


def mlp(
    x_after_norm: Tensor,
    *,
    w_gate: Tensor,
    w_up: Tensor,
    w_down: Tensor,
    activation: str,
    record: ops.Record = ops.ignore,
) -> Tensor:
    g = x_after_norm @ w_gate
    u = x_after_norm @ w_up
    match activation:
        case "gelu":
            act_after_mul = nnf.gelu(g, approximate="tanh") * u
        case "silu":
            act_after_mul = nnf.silu(g) * u
        case _:
            raise ops.unknown_variant("decoder_ffn", "activation", activation, DECODER_FFN.variants)
    record("act_after_mul", act_after_mul)
    return act_after_mul @ w_down


def decoder_ffn_reference(
    x: Tensor,
    *,
    w_norm: Tensor,
    w_gate: Tensor,
    w_up: Tensor,
    w_down: Tensor,
    activation: str,
    norm_rounding: str,
    eps: float = 1e-6,
    record: ops.Record = ops.ignore,
    mlp_with: ops.SeamCall | None = None,
) -> Tensor:
    h = ops.rms_norm(x.float(), eps)
    if norm_rounding == "before_weight":
        h = h.to(x.dtype).float()
    h = h * w_norm.float()
    x_after_norm = h.to(x.dtype)
    record("x_after_norm", x_after_norm)
    if mlp_with is not None:
        o = mlp_with(x_after_norm)
    else:
        o = mlp(
            x_after_norm,
            w_gate=w_gate,
            w_up=w_up,
            w_down=w_down,
            activation=activation,
            record=record,
        )
    return x + o


DECODER_FFN = StructureSpec(
    name="decoder_ffn",
    version=1,
    source_digest=DIGEST,
    contract_digest=DIGEST,
    inputs=("x",),
    outputs=("y",),
    optional=(),
    slots=("w_norm", "w_gate", "w_up", "w_down"),
    shapes={
        "x": (rows(M), D),
        "w_norm": (D,),
        "w_gate": (D, F),
        "w_up": (D, F),
        "w_down": (F, D),
        "y": (rows(M), D),
    },
    variants={
        "activation": ("gelu", "silu"),
        "norm_rounding": ("after_weight", "before_weight"),
    },
    params={"eps": 1e-6},
    points={"x_after_norm": "statistic", "act_after_mul": "statistic"},
    seams={
        "mlp": SeamSpec(
            name="mlp",
            sources=("x_after_norm",),
            targets=("o",),
            slots=("w_gate", "w_up", "w_down"),
            points=("x_after_norm", "act_after_mul"),
            variants=("activation",),
            params=(),
            gates=(Bound("cosine", ">=", 0.995),),
            call=mlp,
        ),
    },
    boundary_gate=(Bound("cosine", ">=", 0.999), Bound("max_abs"), Bound("p99_abs")),
    latency_against=("torch_compile",),
    rules=(qualify(at_least(D * F, 1048576)),),
    reference=decoder_ffn_reference,
)


def linear_proj_reference(
    x: Tensor, *, w: Tensor, b: Tensor | None = None, bias: str, record: ops.Record = ops.ignore
) -> Tensor:
    record("x", x)
    y = x.float() @ w.float()
    if b is not None:
        y = y + b.float()
    return y.to(x.dtype)


LINEAR_PROJ = StructureSpec(
    name="linear_proj",
    version=1,
    source_digest=DIGEST,
    contract_digest=DIGEST,
    inputs=("x",),
    outputs=("y",),
    optional=("b",),
    slots=("w", "b"),
    shapes={"x": (rows(M), K), "w": (K, N), "b": (N,), "y": (rows(M), N)},
    variants={"bias": ("none", "add")},
    params={},
    points={"x": "statistic"},
    seams={},
    boundary_gate=(Bound("cosine", ">=", 0.999), Bound("max_abs")),
    latency_against=("torch_compile",),
    rules=(qualify(at_least(K * N, 1048576)),),
    reference=linear_proj_reference,
)


def qkv_pack_reference(
    x: Tensor, *, w: tuple[Tensor, ...], record: ops.Record = ops.ignore
) -> tuple[Tensor, ...]:
    record("x", x)
    return tuple((x.float() @ item.float()).to(x.dtype) for item in w)


QKV_PACK = StructureSpec(
    name="qkv_pack",
    version=1,
    source_digest=DIGEST,
    contract_digest=DIGEST,
    inputs=("x",),
    outputs=("y",),
    optional=(),
    slots=("w",),
    shapes={"x": (rows(M), K), "w": (K, N_i), "y": (rows(M), N_i)},
    variants={},
    params={},
    points={"x": "statistic"},
    seams={},
    boundary_gate=(Bound("cosine", ">=", 0.999), Bound("max_abs")),
    latency_against=("torch_compile",),
    reference=qkv_pack_reference,
)


def norm_fused_reference(
    x: Tensor, *, w: Tensor, b: Tensor, eps: float = 1e-6, record: ops.Record = ops.ignore
) -> Tensor:
    y = ops.layer_norm(x.float(), eps) * w.float() + b.float()
    return y.to(x.dtype)


NORM_FUSED = StructureSpec(
    name="norm_fused",
    version=1,
    source_digest=DIGEST,
    contract_digest=DIGEST,
    inputs=("x",),
    outputs=("y",),
    optional=(),
    slots=("w", "b"),
    shapes={"x": (rows(M), D), "w": (D,), "b": (D,), "y": (rows(M), D)},
    variants={},
    params={"eps": 1e-6},
    points={},
    seams={},
    boundary_gate=(Bound("cosine", ">=", 0.999), Bound("max_abs")),
    latency_against=("torch_compile",),
    reference=norm_fused_reference,
)

# ---------------------------------------------------------------- impls


def _impl_spec(name: str, structure: StructureSpec, seam: str | None, **given: Any) -> ImplSpec:
    defaults: dict[str, Any] = {
        "name": name,
        "structure": structure.name,
        "structure_version": structure.version,
        "seam": seam,
        "version": 1,
        "source_digest": DIGEST,
        "contract_digest": DIGEST,
        "scales": {},
        "admits": {},
        "only": {},
        "rungs": (RungSpec("torch", run="run_torch"), RungSpec("emulate", run="run_emulate")),
    }
    return ImplSpec(**(defaults | given))


class FfnFp8Static(BoundImpl):
    """The gated FFN in static per-tensor FP8; gate and up share one weight scale."""

    SPEC = _impl_spec(
        "fp8_static",
        DECODER_FFN,
        "mlp",
        scales={
            "in_s": ScaleSpec("x_after_norm", "fp8_e4m3", "tensor"),
            "hid_s": ScaleSpec("act_after_mul", "fp8_e4m3", "tensor"),
        },
        admits={"x_after_norm": ("bf16", "fp16", "f32")},
        rungs=(
            RungSpec(
                "hub",
                run="run_hub",
                package="flashrt/flashrt-fp8-swiglu-ffn",
                version=1,
                entries=("bf16_fp8_geglu_mlp_bf16", "bf16_fp8_swiglu_mlp_bf16"),
                envelope=(divides(16, D), divides(16, F)),
            ),
            RungSpec("torch", run="run_torch"),
            RungSpec("emulate", run="run_emulate"),
        ),
    )

    def __init__(
        self,
        *,
        w_gate: Tensor,
        w_up: Tensor,
        w_down: Tensor,
        in_s: Tensor,
        hid_s: Tensor,
        activation: str,
    ) -> None:
        super().__init__()
        self.activation = activation
        self.pack("gate_up", numerics.quantize_fp8(torch.cat([w_gate.T, w_up.T]), per="tensor"))
        self.pack("down", numerics.quantize_fp8(w_down.T, per="tensor"))
        self.keep_scale("in_s", in_s)
        self.keep_scale("hid_s", hid_s)
        self.widths = (w_gate.shape[1], w_up.shape[1])

    def _act(self, g: Tensor, u: Tensor) -> Tensor:
        gate = nnf.gelu(g, approximate="tanh") if self.activation == "gelu" else nnf.silu(g)
        return gate * u

    def run_hub(self, x_after_norm: Tensor) -> Tensor:
        if self.activation == "gelu":
            entry = self.kernel.bf16_fp8_geglu_mlp_bf16
        else:
            entry = self.kernel.bf16_fp8_swiglu_mlp_bf16
        return entry(
            x_after_norm.to(torch.bfloat16),
            self.gate_up,
            self.down,
            self.in_s,
            self.gate_up_scale,
            self.hid_s,
            self.down_scale,
        )

    def run_torch(self, x_after_norm: Tensor) -> Tensor:
        x_q = numerics.to_fp8(x_after_norm, self.in_s)
        both = numerics.scaled_mm(x_q, self.gate_up, self.in_s, self.gate_up_scale)
        g, u = both.float().split(self.widths, dim=-1)
        act_q = numerics.to_fp8(self._act(g, u), self.hid_s)
        return numerics.scaled_mm(act_q, self.down, self.hid_s, self.down_scale)

    def run_emulate(self, x_after_norm: Tensor) -> Tensor:
        x_q = numerics.fp8_round_trip(x_after_norm, self.in_s)
        w_gate, w_up = numerics.dequantize(self.gate_up, self.gate_up_scale).split(self.widths)
        g = (x_q @ w_gate.T).to(torch.bfloat16).float()
        u = (x_q @ w_up.T).to(torch.bfloat16).float()
        act_q = numerics.fp8_round_trip(self._act(g, u), self.hid_s)
        w_down = numerics.dequantize(self.down, self.down_scale)
        return (act_q @ w_down.T).to(torch.bfloat16)


class LinearFp8Static(BoundImpl):
    """y = x @ w (+ b) in static per-tensor FP8."""

    SPEC = _impl_spec(
        "fp8_static",
        LINEAR_PROJ,
        None,
        scales={"in_s": ScaleSpec("x", "fp8_e4m3", "tensor")},
        admits={"x": ("bf16", "fp16", "f32")},
    )

    def __init__(self, *, w: Tensor, in_s: Tensor, b: Tensor | None = None) -> None:
        super().__init__()
        self.pack("weight", numerics.quantize_fp8(w.T, per="tensor"))
        self.keep_scale("in_s", in_s)
        self.pack("bias", b)

    def _plus_bias(self, y: Tensor) -> Tensor:
        return y if self.bias is None else (y.float() + self.bias.float()).to(y.dtype)

    def run_torch(self, x: Tensor) -> Tensor:
        x_q = numerics.to_fp8(x, self.in_s)
        return self._plus_bias(numerics.scaled_mm(x_q, self.weight, self.in_s, self.weight_scale))

    def run_emulate(self, x: Tensor) -> Tensor:
        w = numerics.dequantize(self.weight, self.weight_scale)
        y = (numerics.fp8_round_trip(x, self.in_s) @ w.T).to(torch.bfloat16)
        return self._plus_bias(y)


class QkvFp8Static(BoundImpl):
    """Sibling projections of one input as one product; returns one tensor for each."""

    SPEC = _impl_spec(
        "fp8_static",
        QKV_PACK,
        None,
        scales={"in_s": ScaleSpec("x", "fp8_e4m3", "tensor")},
        admits={"x": ("bf16", "fp16", "f32")},
    )

    def __init__(self, *, w: tuple[Tensor, ...], in_s: Tensor) -> None:
        super().__init__()
        self.pack("all", numerics.quantize_fp8(torch.cat([item.T for item in w]), per="tensor"))
        self.keep_scale("in_s", in_s)
        self.all_rows = [item.shape[1] for item in w]

    def run_torch(self, x: Tensor) -> tuple[Tensor, ...]:
        x_q = numerics.to_fp8(x, self.in_s)
        y = numerics.scaled_mm(x_q, self.all, self.in_s, self.all_scale)
        return y.split(self.all_rows, dim=-1)

    def run_emulate(self, x: Tensor) -> tuple[Tensor, ...]:
        w = numerics.dequantize(self.all, self.all_scale)
        y = (numerics.fp8_round_trip(x, self.in_s) @ w.T).to(torch.bfloat16)
        return y.split(self.all_rows, dim=-1)


class NormFused(BoundImpl):
    """LayerNorm in float32, stored in bf16."""

    SPEC = _impl_spec("fused", NORM_FUSED, None, admits={"x": ("bf16", "fp16", "f32")})

    def __init__(self, *, w: Tensor, b: Tensor, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.pack("w", w)
        self.pack("b", b)

    def run_torch(self, x: Tensor) -> Tensor:
        normed = nnf.layer_norm(x.float(), x.shape[-1:], self.w.float(), self.b.float(), self.eps)
        return normed.to(torch.bfloat16)

    def run_emulate(self, x: Tensor) -> Tensor:
        normed = ops.layer_norm(x.float(), self.eps) * self.w.float() + self.b.float()
        return normed.to(torch.bfloat16)


# ---------------------------------------------------------------- schemes and binding

FP8_STATIC = SchemeSpec(
    name="fp8_static",
    source_digest=DIGEST,
    contract_digest=DIGEST,
    routes=(
        Route(
            "decoder_ffn",
            "mlp",
            {
                "x_after_norm": Stat("amax", "tensor"),
                "act_after_mul": Stat("amax", "tensor"),
            },
            FfnFp8Static,
        ),
        Route("linear_proj", None, {"x": Stat("amax", "tensor")}, LinearFp8Static),
        Route("qkv_pack", None, {"x": Stat("amax", "tensor")}, QkvFp8Static),
        Route("norm_fused", None, {}, NormFused),
    ),
    otherwise="no fp8_static form for this structure",
)

NONE = SchemeSpec(
    name="none",
    source_digest=DIGEST,
    contract_digest=DIGEST,
    routes=(),
    otherwise="quantisation is off",
)


def tiny_dims(config: Any) -> dict[str, int]:
    return {
        "D": config.hidden_size,
        "F": config.intermediate_size,
        "L": config.num_hidden_layers,
        "Dh": first(
            get(config, "head_dim"),
            lambda: exact_div(config.hidden_size, config.num_attention_heads),
        ),
    }


def ffn_seat(config: Any, size: dict[str, int], i: int) -> Seat:
    layer, at = f"layers.{i}", f"layers.{i}.mlp"
    return Seat(
        name=f"ffn[{i}]",
        structure=DECODER_FFN,
        seam="mlp",
        path=at,
        form="swap",
        variants={
            "activation": choose(
                config.hidden_act,
                {"silu": "silu", "gelu_pytorch_tanh": "gelu"},
                what="config.hidden_act",
            ),
            "norm_rounding": "before_weight",
        },
        params={"eps": config.rms_norm_eps},
        dims={"D": size["D"], "F": size["F"]},
        slots={
            "w_gate": Weight(f"{at}.gate_proj.weight", "out_in"),
            "w_up": Weight(f"{at}.up_proj.weight", "out_in"),
            "w_down": Weight(f"{at}.down_proj.weight", "out_in"),
        },
        points={"x_after_norm": InputOf(at), "act_after_mul": InputOf(f"{at}.down_proj")},
        boundary=Boundary(
            path=layer,
            inputs={"x": InputOf(f"{layer}.post_attention_layernorm")},
            outputs={"y": OutputOf(layer)},
            slots={"w_norm": Weight(f"{layer}.post_attention_layernorm.weight")},
        ),
        expects=(
            Expect("class", ("TinyMLP",)),
            Expect("bias", ("none",), (f"{at}.gate_proj", f"{at}.up_proj", f"{at}.down_proj")),
        ),
    )


def o_proj_seat(config: Any, size: dict[str, int], i: int) -> Seat:
    at = f"layers.{i}.self_attn.o_proj"
    return Seat(
        name=f"o[{i}]",
        structure=LINEAR_PROJ,
        seam=None,
        path=at,
        form="swap",
        variants={"bias": "none"},
        params={},
        dims={"K": size["D"], "N": size["D"]},
        slots={"w": Weight(f"{at}.weight", "out_in")},
        points={"x": InputOf(at)},
        expects=(Expect("class", ("Linear",)), Expect("bias", ("none",), (at,))),
    )


def qkv_seat(config: Any, size: dict[str, int], i: int) -> Seat:
    at = f"layers.{i}.self_attn"
    members = tuple(f"{at}.{name}" for name in ("q_proj", "k_proj", "v_proj"))
    return Seat(
        name=f"qkv[{i}]",
        structure=QKV_PACK,
        seam=None,
        path=at,
        form="siblings",
        variants={},
        params={},
        dims={"K": size["D"]},
        slots={"w": tuple(Weight(f"{member}.weight", "out_in") for member in members)},
        points={"x": InputOf(members[0])},
        siblings=Siblings(members, ("shared_input", "call_order")),
        expects=(Expect("bias", ("none",), members),),
    )


def norm_seat(config: Any, size: dict[str, int], i: int) -> Seat:
    at = f"layers.{i}.input_layernorm"
    return Seat(
        name=f"norm[{i}]",
        structure=NORM_FUSED,
        seam=None,
        path=at,
        form="swap",
        variants={},
        params={"eps": 1e-6},
        dims={"D": size["D"]},
        slots={"w": Weight(f"{at}.weight"), "b": Weight(f"{at}.bias")},
        points={},
        expects=(Expect("class", ("LayerNorm",)),),
    )


def tiny_seats(model: nn.Module) -> list[Seat]:
    """Every seat, in the order the host runs them."""
    config = model.config
    size = tiny_dims(config)
    found: list[Seat] = []
    for i in range(size["L"]):
        found.append(norm_seat(config, size, i))
        found.append(qkv_seat(config, size, i))
        found.append(o_proj_seat(config, size, i))
        found.append(ffn_seat(config, size, i))
    return found


BINDING = HostBinding(
    name="tiny",
    source_digest=DIGEST,
    contract_digest=DIGEST,
    hosts=(Host("torch", ">=2", ("TinyDecoder",)),),
    dims=tiny_dims,
    seats=tiny_seats,
    schemes={"fp8_static": FP8_STATIC, "none": NONE},
    auto=((8.9, "fp8_static"), (None, "none")),
    runtime_abi=1,
)


def seat_named(model: nn.Module, name: str) -> Seat:
    return next(seat for seat in tiny_seats(model) if seat.name == name)
