"""Tiny hosts of transformers' own classes, with random weights that leave no step idle."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
import transformers
from torch import Tensor, nn

D, F, LAYERS, VOCAB = 64, 96, 2, 128

_DECODER = {
    "vocab_size": VOCAB,
    "hidden_size": D,
    "intermediate_size": F,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,  # not hidden_size / heads, as in Qwen3 and Gemma
    "rms_norm_eps": 1e-5,
}


@dataclass(frozen=True)
class Family:
    """One host family: its model, its samples, and the seats that its binding must find.

    boundary   the gate that judges a decoder_ffn here
    """

    name: str
    build: Callable[[], nn.Module]
    sample: Callable[[torch.Generator], dict[str, Tensor]]
    seats: dict[str, int]
    boundary: str = "boundary"

    def model(self, dtype: torch.dtype = torch.float32) -> nn.Module:
        """A new model with the same weights at every call."""
        torch.manual_seed(11)
        model = self.build()
        randomise(model)
        return model.to(dtype).eval()

    def samples(self, count: int, seed: int = 0) -> list[dict[str, Tensor]]:
        """Keyword arguments of the model, one mapping a sample."""
        generator = torch.Generator().manual_seed(seed)
        return [self.sample(generator) for _ in range(count)]

    def generated(self) -> ModuleType:
        return importlib.import_module(f"flashrt_gen.{self.name}")


@torch.no_grad()
def randomise(model: nn.Module) -> None:
    """Matrices that keep the size of what they multiply, norms off their initial value.

    The residual stream starts at unit size and what is added to it is smaller, as in a
    trained model.
    """
    for name, parameter in model.named_parameters():
        if "embed_tokens" in name:
            scale = getattr(model.get_input_embeddings(), "scalar_embed_scale", 1.0)
            parameter.normal_(std=1.0 / scale)
        elif parameter.dim() >= 2:
            branch = 0.3 if name.endswith(("down_proj.weight", "o_proj.weight")) else 1.0
            parameter.normal_(std=branch * parameter[0].numel() ** -0.5)
        elif "norm" in name and name.endswith("weight"):
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
        else:
            parameter.normal_(std=0.1)


def _tokens(generator: torch.Generator) -> dict[str, Tensor]:
    return {"input_ids": torch.randint(VOCAB, (1, 24), generator=generator)}


def _images(generator: torch.Generator) -> dict[str, Tensor]:
    return {"pixel_values": torch.randn(1, 3, 32, 32, generator=generator)}


def _decoder(kind: str, config_of: str | None = None, **more: Any) -> Callable[[], nn.Module]:
    def build() -> nn.Module:
        config = getattr(transformers, f"{config_of or kind}Config")(**_DECODER, **more)
        model: nn.Module = getattr(transformers, f"{kind}ForCausalLM")(config)
        return model

    return build


def _siglip() -> nn.Module:
    config = transformers.SiglipVisionConfig(
        hidden_size=D,
        intermediate_size=F,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        image_size=32,
        patch_size=8,
    )
    return transformers.SiglipVisionModel(config)


_ATTENTION = {"ffn": LAYERS, "qkv": LAYERS, "o": LAYERS}

QWEN3 = Family("qwen3", _decoder("Qwen3"), _tokens, _ATTENTION)
LLAMA = Family("llama", _decoder("Llama"), _tokens, _ATTENTION)
GEMMA3 = Family(
    "gemma3",
    _decoder(
        "Gemma3",
        "Gemma3Text",
        layer_types=["sliding_attention", "full_attention"],
        sliding_window=8,
    ),
    _tokens,
    {"ffn": LAYERS},
    boundary="seam",
)
SIGLIP = Family("siglip", _siglip, _images, {"norm1": LAYERS, "norm2": LAYERS, "post": 1})

FAMILIES = (QWEN3, LLAMA, GEMMA3, SIGLIP)
