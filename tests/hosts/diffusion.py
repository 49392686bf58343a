"""Tiny hosts of diffusers' own classes, with random weights that leave no step idle."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

if __name__ == "__main__":  # diffusers 0.35 and 0.36 fail to import beside a newer torchao
    sys.modules["torchao"] = None  # type: ignore[assignment]

import diffusers
from torch import Tensor, nn

from frtspec.runtime.spec import HostBinding

Sample = dict[str, Any]


@dataclass(frozen=True)
class Diffusion:
    """One host family. ``seats``: how many of each seat its binding must find."""

    name: str
    build: Callable[[], nn.Module]
    sample: Callable[[torch.Generator], Sample]
    seats: dict[str, int]

    def model(self, dtype: torch.dtype = torch.float32) -> nn.Module:
        """A new model with the same weights at every call, cast as `from_pretrained` does:
        what the class keeps in float32 stays so."""
        torch.manual_seed(5)
        model = self.build()
        randomise(model)
        kept = getattr(model, "_keep_in_fp32_modules", None) or ()
        for name, tensor in (*model.named_parameters(), *model.named_buffers()):
            if tensor.is_floating_point() and not any(word in name.split(".") for word in kept):
                tensor.data = tensor.data.to(dtype)
        return model.eval()

    def samples(self, count: int = 2, dtype: torch.dtype = torch.float32) -> list[Sample]:
        generator = torch.Generator().manual_seed(1)
        return [_cast(self.sample(generator), dtype) for _ in range(count)]

    def binding(self) -> HostBinding:
        host: HostBinding = importlib.import_module(f"flashrt_gen.{self.name}").HOST
        return host


def _cast(sample: Sample, dtype: torch.dtype) -> Sample:
    """Floating-point tensors in a dtype; positions stay exact."""
    return {
        name: value if name.endswith("_ids") else _as(value, dtype)
        for name, value in sample.items()
    }


def _as(value: Any, dtype: torch.dtype) -> Any:
    if isinstance(value, list):
        return [_as(item, dtype) for item in value]
    fits = isinstance(value, Tensor) and value.is_floating_point()
    return value.to(dtype) if fits else value


@torch.no_grad()
def randomise(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if "scale_shift_table" in name:
            parameter.normal_(std=0.3)
        elif parameter.dim() >= 2:
            parameter.normal_(std=parameter[0].numel() ** -0.5)
        elif "norm" in name and name.endswith("weight"):
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
        else:
            parameter.normal_(std=0.1)


# ---------------------------------------------------------------- Wan

TOKENS = 2 * 4 * 4
"""Of a video of two frames of 8x8 in patches of 1x2x2."""


def _wan() -> nn.Module:
    return diffusers.WanTransformer3DModel(
        patch_size=(1, 2, 2),
        num_attention_heads=2,
        attention_head_dim=12,
        in_channels=4,
        out_channels=4,
        text_dim=16,
        freq_dim=32,
        ffn_dim=48,
        num_layers=2,
        cross_attn_norm=True,
    )


def _video(generator: torch.Generator) -> Sample:
    """One timestep a token, as Wan 2.2 TI2V is called."""
    return {
        "hidden_states": torch.randn(1, 4, 2, 8, 8, generator=generator),
        "timestep": torch.randint(0, 1000, (1, TOKENS), generator=generator),
        "encoder_hidden_states": torch.randn(1, 6, 16, generator=generator),
    }


# ---------------------------------------------------------------- Cosmos


def _cosmos() -> nn.Module:
    return diffusers.CosmosTransformer3DModel(
        in_channels=4,
        out_channels=4,
        num_attention_heads=2,
        attention_head_dim=16,
        num_layers=2,
        mlp_ratio=2,
        text_embed_dim=20,
        adaln_lora_dim=8,
        max_size=(4, 16, 16),
        patch_size=(1, 2, 2),
        concat_padding_mask=False,  # would need torchvision
    )


def _world(generator: torch.Generator) -> Sample:
    return {
        "hidden_states": torch.randn(1, 4, 2, 8, 8, generator=generator),
        "timestep": torch.rand(1, generator=generator),
        "encoder_hidden_states": torch.randn(1, 6, 20, generator=generator),
        "fps": 24,
    }


# ---------------------------------------------------------------- Flux


def _flux() -> nn.Module:
    return diffusers.FluxTransformer2DModel(
        patch_size=1,
        in_channels=4,
        num_layers=2,
        num_single_layers=2,
        attention_head_dim=16,
        num_attention_heads=2,
        joint_attention_dim=20,
        pooled_projection_dim=12,
        axes_dims_rope=(4, 4, 8),
    )


def _image(generator: torch.Generator) -> Sample:
    places = torch.zeros(4, 4, 3)
    places[..., 1] = torch.arange(4)[:, None]
    places[..., 2] = torch.arange(4)[None]
    return {
        "hidden_states": torch.randn(1, 16, 4, generator=generator),
        "encoder_hidden_states": torch.randn(1, 5, 20, generator=generator),
        "pooled_projections": torch.randn(1, 12, generator=generator),
        "timestep": torch.rand(1, generator=generator),
        "img_ids": places.reshape(-1, 3),
        "txt_ids": torch.zeros(5, 3),
    }


# ---------------------------------------------------------------- Cosmos 3


def _cosmos3() -> nn.Module:
    return diffusers.Cosmos3OmniTransformer(
        hidden_size=32,
        intermediate_size=48,
        head_dim=8,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_hidden_layers=2,
        latent_channel=4,
        patch_latent_dim=16,
        vocab_size=50,
        rope_axes_dim=(2, 1, 1),
    )


def _thought(generator: torch.Generator) -> Sample:
    """Six words that are understood, and two frames of 4x4 that are made: both of noise."""
    words, frames = 6, 2 * 2 * 2
    length = words + frames
    made = torch.arange(words, length)
    return {
        "input_ids": torch.randint(0, 50, (words,), generator=generator),
        "text_indexes": torch.arange(words),
        "position_ids": torch.arange(length).expand(3, -1),
        "und_len": words,
        "sequence_length": length,
        "vision_tokens": [torch.randn(1, 4, 2, 4, 4, generator=generator)],
        "vision_token_shapes": [(2, 2, 2)],
        "vision_sequence_indexes": made,
        "vision_mse_loss_indexes": made,
        "vision_timesteps": torch.full((frames,), 500.0),
        "vision_noisy_frame_indexes": [torch.arange(2)],
    }


WAN = Diffusion(
    "wan",
    _wan,
    _video,
    dict.fromkeys(
        ["block", "qkv", "qk", "attention", "o", "norm2", "cross_q", "cross_k", "cross_v"]
        + ["cross_attention", "cross_o", "ffn"],
        2,
    ),
)
COSMOS = Diffusion(
    "cosmos",
    _cosmos,
    _world,
    dict.fromkeys(
        ["norm1", "norm2", "norm3", "qkv", "qk", "attention", "o"]
        + ["cross_q", "cross_k", "cross_v", "cross_attention", "cross_o", "ffn"],
        2,
    ),
)
FLUX = Diffusion(
    "flux",
    _flux,
    _image,
    dict.fromkeys(
        ["norm1", "norm1_context", "qkv", "add_qkv", "attention", "o", "add_o", "ff", "ff_context"]
        + ["single_norm", "single_qkv", "single_qk", "single_attention", "single_up", "single_out"],
        2,
    )
    | {"norm_out": 1, "out": 1},
)
COSMOS3 = Diffusion(
    "cosmos3",
    _cosmos3,
    _thought,
    dict.fromkeys(
        ["norm1", "add_norm1", "qkv", "add_qkv", "attention", "full_attention", "o", "add_o"]
        + ["norm2", "add_norm2", "ffn", "add_ffn"],
        2,
    )
    | dict.fromkeys(["patch_in", "patch_out", "final_norm", "add_final_norm"], 1),
)

DIFFUSION = (WAN, COSMOS, FLUX, COSMOS3)


def main(name: str) -> None:
    """Prints what verify says of one family's binding, with the diffusers found, as JSON."""
    from frtspec.live.verify import verify

    (family,) = (family for family in DIFFUSION if family.name == name)
    model = family.model()
    found = verify(
        family.binding(), model, lambda sample: model(**sample), observations=family.samples()
    )
    print(json.dumps(found.to_json() | {"diffusers": diffusers.__version__}))


if __name__ == "__main__":
    main(sys.argv[1])
