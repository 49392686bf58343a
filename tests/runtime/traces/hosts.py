"""Three small hosts, stage by stage: a diffusers denoise loop, a policy's tick, a greedy decode."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from frtspec.runtime import trace

STEPS = 4
StageFn = Callable[[MutableMapping[str, Any]], None]


@dataclass
class Host:
    """``make`` gives the values anew, ``stages`` are its functions; ``before`` is what the
    caller does before a step; ``live`` holds the host's own objects. A test replaces what it
    wants to break."""

    make: Callable[[], Mapping[str, Any]]
    stages: dict[str, StageFn]
    before: Callable[[str, int, MutableMapping[str, Any]], None] | None = None
    steps: dict[str, int] = field(default_factory=dict)
    forms: dict[str, trace.Form] = field(default_factory=dict)
    live: dict[str, Any] = field(default_factory=dict)

    def run(self, pipeline: trace.PipelineSpec, **options: Any) -> trace.Report:
        return trace.run(
            pipeline,
            self.stages,
            self.make,
            steps=self.steps,
            before_step=self.before,
            forms=self.forms,
            **options,
        )

    def after(self, stage: str, more: StageFn) -> None:
        """Let a stage do something more once its own work is done."""
        own = self.stages[stage]

        def both(values: MutableMapping[str, Any]) -> None:
            own(values)
            more(values)

        self.stages[stage] = both


# ---------------------------------------------------------------- a denoise loop


@cache
def _transformer() -> nn.Module:
    from diffusers import SD3Transformer2DModel

    torch.manual_seed(0)
    return SD3Transformer2DModel(
        sample_size=8,
        patch_size=2,
        in_channels=4,
        num_layers=1,
        attention_head_dim=8,
        num_attention_heads=2,
        joint_attention_dim=16,
        caption_projection_dim=16,
        pooled_projection_dim=16,
        out_channels=4,
    ).eval()


def denoiser(steps: int = STEPS) -> Host:
    """A tiny diffusion transformer under diffusers' flow-matching scheduler."""
    from diffusers import FlowMatchEulerDiscreteScheduler

    model = _transformer()
    torch.manual_seed(0)
    encoder = nn.Linear(16, 16)
    text, pooled, noise = torch.randn(1, 5, 16), torch.randn(1, 16), torch.randn(1, 4, 8, 8)
    live: dict[str, Any] = {}

    def make() -> dict[str, Any]:
        live["scheduler"] = FlowMatchEulerDiscreteScheduler()
        return {
            "prepared_inputs": [text.clone(), pooled.clone()],
            "seed_or_source": noise.clone(),
            "latent": torch.zeros(1, 4, 8, 8),
            "timestep": torch.zeros(1),
            "condition": [torch.zeros(1, 5, 16), torch.zeros(1, 16)],
            "scheduler_state": lambda: [live["scheduler"].step_index, live["scheduler"].sigmas],
        }

    @torch.no_grad()
    def condition_encode(values: MutableMapping[str, Any]) -> None:
        words, whole = values["prepared_inputs"]
        values["condition"][0].copy_(encoder(words))
        values["condition"][1].copy_(whole)

    def latent_prepare(values: MutableMapping[str, Any]) -> None:
        live["scheduler"].set_timesteps(steps)
        values["latent"].copy_(values["seed_or_source"])

    @torch.no_grad()
    def denoise(values: MutableMapping[str, Any]) -> None:
        latent, (words, whole) = values["latent"], values["condition"]
        time = values["timestep"]
        flow = model(latent, words, whole, time, return_dict=False)[0]
        latent.copy_(live["scheduler"].step(flow, time, latent, return_dict=False)[0])

    def before(loop: str, step: int, values: MutableMapping[str, Any]) -> None:
        values["timestep"].fill_(float(live["scheduler"].timesteps[step]))

    stages = {
        "condition_encode": condition_encode,
        "latent_prepare": latent_prepare,
        "denoise": denoise,
    }
    return Host(make, stages, before, {"denoising": steps}, live=live)


# ---------------------------------------------------------------- a tick


def policy() -> Host:
    """The tick of a policy: a condition from images, then a fixed loop over actions."""
    torch.manual_seed(1)
    encoder, head = nn.Linear(12, 8), nn.Linear(8 + 3 + 2, 3)
    images, state, noise = torch.randn(1, 12), torch.randn(1, 2), torch.randn(1, 3)

    def make() -> dict[str, Any]:
        return {
            "images": images.clone(),
            "language": torch.tensor([3, 1, 2]),
            "state": state.clone(),
            "noise": noise.clone(),
            "cond_features": torch.zeros(1, 8),
            "action_chunk": torch.zeros(1, 3),
        }

    @torch.no_grad()
    def obs_encode(values: MutableMapping[str, Any]) -> None:
        values["cond_features"].copy_(encoder(values["images"]).relu())

    @torch.no_grad()
    def action_denoise(values: MutableMapping[str, Any]) -> None:
        chunk: Tensor = values["action_chunk"]
        if not bool(chunk.any()):
            chunk.copy_(values["noise"])
        seen = torch.cat([values["cond_features"], chunk, values["state"]], dim=-1)
        chunk.add_(head(seen), alpha=1 / STEPS)

    eager = trace.Form("eager", "no graph on this device")
    return Host(
        make,
        {"obs_encode": obs_encode, "action_denoise": action_denoise},
        steps={"denoise": STEPS},
        forms={"obs_encode": eager, "action_denoise": eager},
    )


# ---------------------------------------------------------------- a greedy decode


@cache
def _llama() -> nn.Module:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(2)
    config = LlamaConfig(
        vocab_size=64,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=64,
    )
    return LlamaForCausalLM(config).eval()


def decoder(length: int = 5) -> Host:
    """Greedy decoding of a tiny Llama over transformers' static cache."""
    from transformers import StaticCache

    model: Any = _llama()
    config = model.config
    prompt = torch.tensor([[5, 9, 33, 7]])
    live: dict[str, Any] = {}

    def kept() -> list[Tensor] | None:
        layers = [layer for layer in live["cache"].layers if layer.is_initialized]
        return [t for layer in layers for t in (layer.keys, layer.values)] or None

    def make() -> dict[str, Any]:
        live["cache"] = StaticCache(config=config, max_cache_len=32)
        live["chosen"] = []
        return {
            "token_ids": prompt.clone(),
            "token_id": torch.zeros(1, 1, dtype=torch.long),
            "logits": torch.zeros(1, config.vocab_size),
            "stop": False,
            "kv_state": kept,
        }

    @torch.no_grad()
    def forward(values: MutableMapping[str, Any], tokens: Tensor) -> None:
        out = model(input_ids=tokens, past_key_values=live["cache"], use_cache=True)
        values["logits"].copy_(out.logits[:, -1])

    def prefill(values: MutableMapping[str, Any]) -> None:
        forward(values, values["token_ids"])

    def token_select(values: MutableMapping[str, Any]) -> None:
        values["token_id"].copy_(values["logits"].argmax(-1, keepdim=True))
        live["chosen"].append(int(values["token_id"]))
        values["stop"] = len(live["chosen"]) == length

    def decode(values: MutableMapping[str, Any]) -> None:
        forward(values, values["token_id"])

    eager = trace.Form("eager", "no graph on this device")
    live.update(model=model, prompt=prompt)
    return Host(
        make,
        {"prefill": prefill, "token_select": token_select, "decode": decode},
        steps={"generate": 8},
        forms={"prefill": eager, "decode": eager},
        live=live,
    )
