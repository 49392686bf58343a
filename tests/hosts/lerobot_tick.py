"""A tick of lerobot's PI05Policy, stage by stage, out of the policy's own methods.

``sample_actions`` runs all of it in one call; here the encoding of the observation and each
step of the loop are apart, as a runtime would run them.
"""

from __future__ import annotations

import sys
from collections.abc import MutableMapping
from typing import Any

import torch
from torch import Tensor

from frtspec.runtime import trace


def report(policy: Any, observation: dict[str, Any], use: trace.PipelineUse) -> dict[str, Any]:
    """What the trace checks say of a tick, and whether its actions are the policy's."""
    model = policy.model
    home = sys.modules[type(model).__module__]
    live: dict[str, Any] = {}
    steps = use.steps(policy)["denoise"]

    def kept() -> list[Tensor] | None:
        layers = live["cache"].layers if "cache" in live else ()
        return [t for layer in layers for t in (layer.keys, layer.values)] or None

    def make() -> dict[str, Any]:
        live.clear()
        live["step"] = 0
        return {
            "images": observation["images"][0].clone(),
            "language": observation["tokens"].clone(),
            "noise": observation["noise"].clone(),
            "action_chunk": torch.zeros_like(observation["noise"]),
            "cond_features": kept,
        }

    @torch.no_grad()
    def obs_encode(values: MutableMapping[str, Any]) -> None:
        embedded, padded, attends = model.embed_prefix(
            [values["images"]], observation["img_masks"], values["language"], observation["masks"]
        )
        mask = home.prepare_attention_masks_4d(home.make_att_2d_masks(padded, attends))
        model.paligemma_with_expert.paligemma.model.language_model.config._attn_implementation = (
            "eager"
        )
        _, live["cache"] = model.paligemma_with_expert.forward(
            attention_mask=mask,
            position_ids=torch.cumsum(padded, dim=1) - 1,
            past_key_values=None,
            inputs_embeds=[embedded, None],
            use_cache=True,
        )
        live["padded"] = padded

    @torch.no_grad()
    def action_denoise(values: MutableMapping[str, Any]) -> None:
        chunk: Tensor = values["action_chunk"]
        if live["step"] == 0:
            chunk.copy_(values["noise"])
        time = torch.full((len(chunk),), 1.0 - live["step"] / steps)
        chunk.add_(model.denoise_step(live["padded"], live["cache"], chunk, time), alpha=-1 / steps)
        live["step"] += 1
        live["actions"] = chunk.clone()

    found = trace.run(
        use.pipeline,
        {"obs_encode": obs_encode, "action_denoise": action_denoise},
        make,
        steps={"denoise": steps},
        forms=dict.fromkeys(
            ("obs_encode", "action_denoise"), trace.Form("eager", "no graph on this device")
        ),
        uses=use.stages(policy),
    )
    whole = model.sample_actions(**observation)
    return {
        "ok": found.ok,
        "said": str(found),
        "stages": [row.stage for row in found.record.runs],
        "modules": {n: type(m).__name__ for n, m in trace.modules(use, policy).items()},
        "distance": float((live["actions"] - whole).norm() / whole.norm()),
    }
