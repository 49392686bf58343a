"""Small hosts of every family that has a binding, for the scan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import diffusers
import torch
import transformers
from torch import nn

from tests.hosts import tiny

Built = tuple[nn.Module, Callable[[], Any]]

D, F = 64, 96
TEXT = {
    "vocab_size": 160,
    "hidden_size": D,
    "intermediate_size": F,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 32,
    "pad_token_id": 0,
}
VISION = {
    "hidden_size": 48,
    "intermediate_size": 80,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 32,
    "patch_size": 8,
}


def _made(model: nn.Module) -> nn.Module:
    torch.manual_seed(7)
    tiny.randomise(model)
    return model.eval()


def _text(kind: str, **more: Any) -> Built:
    config = getattr(transformers, f"{kind}Config")(**{**TEXT, **more})
    model = _made(getattr(transformers, f"{kind}ForCausalLM")(config))
    ids = torch.arange(1, 13)[None]
    return model, lambda: model(input_ids=ids)


def qwen2() -> Built:
    return _text("Qwen2")


def gemma() -> Built:
    return _text("Gemma")


def qwen3_moe(**more: Any) -> Built:
    sizes = {"num_experts": 6, "num_experts_per_tok": 2, "moe_intermediate_size": 24}
    return _text("Qwen3Moe", **sizes, **more)


def qwen3_5() -> Built:
    config = transformers.models.qwen3_5.Qwen3_5TextConfig(
        **{
            **TEXT,
            "num_hidden_layers": 4,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 16,
        }
    )
    model = _made(transformers.models.qwen3_5.Qwen3_5ForCausalLM(config))
    ids = torch.arange(1, 13)[None]
    return model, lambda: model(input_ids=ids)


def paligemma() -> Built:
    config = transformers.PaliGemmaConfig(
        text_config={**TEXT, "model_type": "gemma"},
        vision_config={**VISION, "model_type": "siglip_vision_model"},
        projection_dim=D,
        image_token_index=150,
    )
    model = _made(transformers.PaliGemmaForConditionalGeneration(config))
    ids = torch.cat([torch.full((16,), 150), torch.arange(1, 6)])[None]
    pixels = torch.randn(1, 3, 32, 32)
    return model, lambda: model(input_ids=ids, pixel_values=pixels)


def qwen3_vl() -> Built:
    config = transformers.Qwen3VLConfig(
        text_config={
            **TEXT,
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 1e4,
                "mrope_section": [8, 4, 4],
            },
        },
        vision_config={
            "depth": 2,
            "hidden_size": 48,
            "intermediate_size": 80,
            "num_heads": 4,
            "patch_size": 4,
            "out_hidden_size": D,
            "deepstack_visual_indexes": [0],
            "num_position_embeddings": 16,
        },
        image_token_id=150,
        vision_start_token_id=151,
        vision_end_token_id=152,
    )
    model = _made(transformers.Qwen3VLForConditionalGeneration(config))
    grid = torch.tensor([[1, 4, 4]])
    pixels = torch.randn(16, 3 * 2 * 4 * 4)
    ids = torch.cat([torch.tensor([1, 151]), torch.full((4,), 150), torch.tensor([152, 2, 3])])[
        None
    ]
    kinds = (ids == 150).long()
    return model, lambda: model(
        input_ids=ids, pixel_values=pixels, image_grid_thw=grid, mm_token_type_ids=kinds
    )


def wan() -> Built:
    model = _made(
        diffusers.WanTransformer3DModel(
            patch_size=(1, 2, 2),
            num_attention_heads=2,
            attention_head_dim=12,
            in_channels=4,
            out_channels=4,
            text_dim=20,
            freq_dim=16,
            ffn_dim=56,
            num_layers=2,
        )
    )
    # Wan 2.2 TI2V has one timestep a token; so is the table that its blocks take.
    return model, _denoised(model, steps=(1, 32))


def _denoised(model: nn.Module, steps: tuple[int, ...] = (1,)) -> Callable[[], Any]:
    """Two steps of one prompt: what they share is seen to stay as it is."""
    video, text = torch.randn(1, 4, 2, 8, 8), torch.randn(1, 7, 20)

    def forward() -> Any:
        first = model(
            hidden_states=video,
            timestep=torch.full(steps, 500),
            encoder_hidden_states=text,
            return_dict=False,
        )
        return model(
            hidden_states=video - 0.5 * first[0],
            timestep=torch.full(steps, 250),
            encoder_hidden_states=text,
            return_dict=False,
        )

    return forward


def cosmos() -> Built:
    model = _made(
        diffusers.CosmosTransformer3DModel(
            in_channels=4,
            out_channels=4,
            num_attention_heads=2,
            attention_head_dim=12,
            num_layers=2,
            mlp_ratio=2.0,
            text_embed_dim=20,
            adaln_lora_dim=4,
            max_size=(4, 32, 32),
            patch_size=(1, 2, 2),
            concat_padding_mask=False,
            extra_pos_embed_type=None,
        )
    )
    return model, _denoised(model)


def flux() -> Built:
    model = _made(
        diffusers.FluxTransformer2DModel(
            patch_size=1,
            in_channels=4,
            num_layers=1,
            num_single_layers=2,
            attention_head_dim=16,
            num_attention_heads=2,
            joint_attention_dim=20,
            pooled_projection_dim=24,
            axes_dims_rope=(4, 4, 8),
        )
    )
    image, text = torch.randn(1, 16, 4), torch.randn(1, 7, 20)
    pooled, step = torch.randn(1, 24), torch.tensor([0.5])
    image_ids, text_ids = torch.zeros(16, 3), torch.zeros(7, 3)
    return model, lambda: model(
        hidden_states=image,
        encoder_hidden_states=text,
        pooled_projections=pooled,
        timestep=step,
        img_ids=image_ids,
        txt_ids=text_ids,
        return_dict=False,
    )


def _tiny(family: tiny.Family) -> Built:
    model = family.model()
    (sample,) = family.samples(1)
    return model, lambda: model(**sample)


HOSTS: dict[str, Callable[[], Built]] = {
    **{family.name: (lambda family=family: _tiny(family)) for family in tiny.FAMILIES},
    "qwen2": qwen2,
    "gemma": gemma,
    "qwen3_moe": qwen3_moe,
    "qwen3_5": qwen3_5,
    "paligemma": paligemma,
    "qwen3_vl": qwen3_vl,
    "wan": wan,
    "cosmos": cosmos,
    "flux": flux,
}
"""Name of the binding -> a new host and one run of it."""
