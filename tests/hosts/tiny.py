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

    seats      how many of each name
    bound      names that the scheme fp8_static binds; it may bind more
    newer      names that only the newer releases of the host's range have
    """

    name: str
    build: Callable[[], nn.Module]
    sample: Callable[[torch.Generator], dict[str, Tensor]]
    seats: dict[str, int]
    bound: frozenset[str] = frozenset({"ffn", "qkv", "o"})
    newer: frozenset[str] = frozenset()

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
        config = getattr(transformers, f"{config_of or kind}Config")(**(_DECODER | more))
        model: nn.Module = getattr(transformers, f"{kind}ForCausalLM")(config)
        return model

    return build


_TOWER = {
    "hidden_size": D,
    "intermediate_size": F,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
}


def _siglip() -> nn.Module:
    return transformers.SiglipVisionModel(transformers.SiglipVisionConfig(**_TOWER))


def _paligemma() -> nn.Module:
    config = transformers.PaliGemmaConfig(
        vision_config={"model_type": "siglip_vision_model", "vision_use_head": False, **_TOWER},
        text_config={"model_type": "gemma", **_DECODER},
        image_token_index=VOCAB - 1,
        projection_dim=D,
    )
    return transformers.PaliGemmaForConditionalGeneration(config)


def _image_and_tokens(generator: torch.Generator) -> dict[str, Tensor]:
    """One image, whose 16 patches stand before the tokens."""
    image = torch.full((1, 16), VOCAB - 1)
    text = torch.randint(VOCAB - 1, (1, 8), generator=generator)
    return {"input_ids": torch.cat([image, text], 1), **_images(generator)}


def _qwen3_vl() -> nn.Module:
    config = transformers.Qwen3VLConfig(
        text_config={
            **_DECODER,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e4,
                "mrope_section": [8, 4, 4],
                "mrope_interleaved": True,
            },
        },
        vision_config={
            "depth": LAYERS,
            "hidden_size": D,
            "intermediate_size": F,
            "num_heads": 4,
            "in_channels": 3,
            "patch_size": 4,
            "temporal_patch_size": 2,
            "spatial_merge_size": 2,
            "out_hidden_size": D,
            "num_position_embeddings": 64,
            "deepstack_visual_indexes": [1],
        },
        image_token_id=VOCAB - 1,
        video_token_id=VOCAB - 2,
        vision_start_token_id=VOCAB - 3,
        vision_end_token_id=VOCAB - 4,
    )
    return transformers.Qwen3VLForConditionalGeneration(config)


def _patches_and_tokens(generator: torch.Generator) -> dict[str, Tensor]:
    """One image of 4 x 4 patches, which merge to 4 tokens."""
    start, image = torch.full((1, 1), VOCAB - 3), torch.full((1, 4), VOCAB - 1)
    text = torch.randint(VOCAB - 4, (1, 12), generator=generator)
    tokens = torch.cat([start, image, text], 1)
    return {
        "input_ids": tokens,
        "mm_token_type_ids": (tokens == VOCAB - 1).int(),
        "pixel_values": torch.randn(16, 3 * 2 * 4 * 4, generator=generator),
        "image_grid_thw": torch.tensor([[1, 4, 4]]),
    }


_DENSE = {
    **dict.fromkeys(("input_norm", "qkv", "attention", "o", "ffn_norm", "ffn"), LAYERS),
    "final_norm": 1,
}
_ENCODER = ("norm1", "qkv", "attention", "o", "norm2", "mlp")
_VISION = {f"vision_{name}": LAYERS for name in _ENCODER}

QWEN3 = Family("qwen3", _decoder("Qwen3"), _tokens, {**_DENSE, "rope": LAYERS})
QWEN2 = Family("qwen2", _decoder("Qwen2"), _tokens, _DENSE)
LLAMA = Family("llama", _decoder("Llama"), _tokens, _DENSE)
GEMMA = Family("gemma", _decoder("Gemma"), _tokens, _DENSE)
GEMMA3 = Family(
    "gemma3",
    _decoder(
        "Gemma3",
        "Gemma3Text",
        layer_types=["sliding_attention", "full_attention"],
        sliding_window=8,
    ),
    _tokens,
    {**_DENSE, **dict.fromkeys(("rope", "attention_norm", "ffn_out_norm"), LAYERS)},
)
QWEN3_MOE = Family(
    "qwen3_moe",
    _decoder(
        "Qwen3Moe",
        moe_intermediate_size=48,
        num_experts=4,
        num_experts_per_tok=2,
        norm_topk_prob=True,
        mlp_only_layers=[0],
    ),
    _tokens,
    {**_DENSE, "rope": LAYERS, "ffn": 1, "experts": 1},
)
QWEN3_5 = Family(
    "qwen3_5",
    _decoder(
        "Qwen3_5",
        "Qwen3_5Text",
        layer_types=["linear_attention", "full_attention"],
        linear_num_key_heads=2,
        linear_num_value_heads=4,
        linear_key_head_dim=16,
        linear_value_head_dim=32,
    ),
    _tokens,
    {
        **_DENSE,
        **dict.fromkeys(("qkv", "rope", "attention", "o", "delta_in", "delta", "delta_out"), 1),
    },
    frozenset({"ffn", "qkv", "o", "delta_in", "delta_out"}),
    frozenset({"delta"}),
)
SIGLIP = Family(
    "siglip",
    _siglip,
    _images,
    {**dict.fromkeys(_ENCODER, LAYERS), "post": 1, "head": 1},
    frozenset({"norm1", "norm2", "post", "qkv", "o"}),
)
PALIGEMMA = Family(
    "paligemma",
    _paligemma,
    _image_and_tokens,
    {**_DENSE, **_VISION, "vision_post": 1, "projector": 1},
    frozenset({"ffn", "qkv", "o", "vision_norm1", "vision_norm2", "vision_qkv", "projector"}),
)
QWEN3_VL = Family(
    "qwen3_vl",
    _qwen3_vl,
    _patches_and_tokens,
    {
        **_DENSE,
        **_VISION,
        **dict.fromkeys(("rope", "vision_rope"), LAYERS),
        **dict.fromkeys(("patch", "merger_norm", "merger_fc1", "merger_fc2"), 1),
    },
    frozenset({"ffn", "qkv", "o", "vision_norm1", "vision_norm2", "vision_qkv", "merger_norm"}),
)

DENSE = (QWEN3, LLAMA, GEMMA3, SIGLIP)
"""The families that the longer tests take: one of each way to sit on a host."""
FAMILIES = (QWEN3, QWEN2, LLAMA, GEMMA, GEMMA3, QWEN3_MOE, QWEN3_5, SIGLIP, PALIGEMMA, QWEN3_VL)
