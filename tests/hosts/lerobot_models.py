"""lerobot's own model classes, built small, without lerobot's own environment.

lerobot 0.6.1 wants Python 3.12, another torch and another transformers. Its model modules
need little of that: they are loaded from the wheel on an overlay with transformers 5.5.4 and
diffusers 0.39, with stand-ins for lerobot's configs and its package initialisers. The classes
that are built are lerobot's, unchanged; only sizes are small.

Run as a script in the overlay: prints as JSON the report of ``frtspec.live.verify`` on a
binding, of the catalog or of a file, or what a scan of the host finds.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

PACKAGES = (
    "lerobot",
    "lerobot.utils",
    "lerobot.policies",
    "lerobot.policies.common",
    "lerobot.policies.rtc",
    "lerobot.policies.pi05",
    "lerobot.policies.smolvla",
    "lerobot.policies.groot",
    "lerobot.policies.groot.action_head",
)
"""Packages whose initialisers are left out: they import the rest of lerobot."""


class _Policy(nn.Module):
    """Stands in for lerobot's base of policies: a module with a config."""

    def __init__(self, config: Any) -> None:
        super().__init__()
        self.config = config


class _Config:
    """Stands in for lerobot's base of configs."""

    @classmethod
    def register_subclass(cls, name: str) -> Callable[[type], type]:
        return lambda subclass: subclass


class _Anything(ModuleType):
    """A module that holds a plain class under every name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        made = type(name, (), {"__class_getitem__": classmethod(lambda cls, item: cls)})
        setattr(self, name, made)
        return made


def prepare(overlay: Path) -> None:
    """Puts the stand-ins in place; afterwards lerobot's model modules can be imported.

    The installed `kernels` is newer than what transformers 5.5.4 knows; it goes without.
    """
    sys.modules["kernels"] = None  # type: ignore[assignment]
    for name in PACKAGES:
        package = ModuleType(name)
        package.__path__ = [str(overlay / name.replace(".", "/"))]
        sys.modules[name] = package
    known = ModuleType("lerobot.utils.import_utils")
    known.__dict__.update(
        _transformers_available=True,
        _diffusers_available=True,
        require_package=lambda *args, **kwargs: None,
    )
    sys.modules["lerobot.utils.import_utils"] = known
    configs = _Anything("lerobot.configs")
    configs.PreTrainedConfig = _Config  # type: ignore[attr-defined]
    for attention in ("ZEROS", "ONES", "LINEAR", "EXP"):
        setattr(configs.RTCAttentionSchedule, attention, attention)
    for mode in ("IDENTITY", "MEAN_STD", "MIN_MAX", "QUANTILES"):
        setattr(configs.NormalizationMode, mode, mode)
    configs.__path__ = []  # type: ignore[attr-defined]
    # Releases below 0.6 import each name from where it is defined.
    for name in ("lerobot.configs", "lerobot.configs.policies", "lerobot.configs.types"):
        sys.modules[name] = configs
    pretrained = ModuleType("lerobot.policies.pretrained")
    pretrained.__dict__.update(PreTrainedPolicy=_Policy, T=Any)
    sys.modules["lerobot.policies.pretrained"] = pretrained
    for name in (
        "lerobot.optim",
        "lerobot.optim.optimizers",
        "lerobot.optim.schedulers",
        "lerobot.policies.utils",
        "lerobot.policies.rtc.modeling_rtc",
    ):
        sys.modules[name] = _Anything(name)
        sys.modules[name].__path__ = []


# ---------------------------------------------------------------- models


@torch.no_grad()
def _randomise(model: nn.Module) -> None:
    for name, parameter in model.named_parameters():
        if parameter.dim() >= 2:
            parameter.normal_(std=parameter[0].numel() ** -0.5)
        elif "norm" in name and name.endswith("weight"):
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
        else:
            parameter.normal_(std=0.1)


Built = tuple[nn.Module, Callable[[dict[str, Any]], Any], list[dict[str, Any]]]


def pi05() -> Built:
    """PI05Policy: two Gemmas of 64 channels, a SigLIP of 32, two layers each."""
    from transformers import GemmaConfig, PaliGemmaConfig

    module = importlib.import_module("lerobot.policies.pi05.modeling_pi05")
    small = module.GemmaConfig(64, 2, 96, 4, 1, 16)
    module.get_gemma_config = lambda variant: small
    vision = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "patch_size": 14}

    def paligemma() -> Any:
        config = PaliGemmaConfig(vision_config={"model_type": "siglip_vision_model", **vision})
        config.projection_dim = config.vision_config.projection_dim = 64
        return config

    module.CONFIG_MAPPING = {"paligemma": paligemma, "gemma": GemmaConfig}
    config = _plain(module.PI05Config, image_resolution=(28, 28), chunk_size=5)
    config.update(max_action_dim=6, num_inference_steps=2, device="cpu", rtc_config=None)
    policy = module.PI05Policy.__new__(module.PI05Policy)
    _Policy.__init__(policy, SimpleNamespace(**config))
    policy.model = module.PI05Pytorch(policy.config)
    projector = policy.model.paligemma_with_expert.paligemma.model.multi_modal_projector
    projector.linear = nn.Linear(32, 64)
    _randomise(policy)
    generator = torch.Generator().manual_seed(3)

    def sample() -> dict[str, Any]:
        return {
            "images": [torch.rand(1, 3, 28, 28, generator=generator)],
            "img_masks": [torch.ones(1, dtype=torch.bool)],
            "tokens": torch.randint(0, 1000, (1, 6), generator=generator),
            "masks": torch.ones(1, 6, dtype=torch.bool),
            "noise": torch.randn(1, 5, 6, generator=generator),
        }

    return policy.eval(), lambda x: policy.model.sample_actions(**x), [sample(), sample()]


def smolvla() -> Built:
    """SmolVLAPolicy: SmolVLM of 64 channels, an expert of 32, four layers each."""
    from transformers import SmolVLMConfig

    expert = importlib.import_module("lerobot.policies.smolvla.smolvlm_with_expert")
    module = importlib.import_module("lerobot.policies.smolvla.modeling_smolvla")
    text = {
        "model_type": "llama",
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": 200,
        "pad_token_id": 0,
        "rms_norm_eps": 1e-5,
    }
    vision = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "image_size": 32,
        "patch_size": 8,
    }
    config = SmolVLMConfig(
        text_config=text, vision_config=vision, scale_factor=2, image_token_id=199, pad_token_id=0
    )
    tokens = SimpleNamespace(fake_image_token_id=1, global_image_token_id=2)
    expert.AutoConfig = SimpleNamespace(from_pretrained=lambda name: config)
    expert.AutoProcessor = SimpleNamespace(
        from_pretrained=lambda name: SimpleNamespace(tokenizer=tokens)
    )
    own = _plain(module.SmolVLAConfig, load_vlm_weights=False, num_vlm_layers=4, chunk_size=5)
    own.update(
        max_action_dim=6, max_state_dim=7, num_steps=2, expert_width_multiplier=0.5, device="cpu"
    )
    policy = module.SmolVLAPolicy.__new__(module.SmolVLAPolicy)
    _Policy.__init__(policy, SimpleNamespace(**own))
    policy.model = module.VLAFlowMatching(policy.config)
    policy = policy.float()
    _randomise(policy)
    generator = torch.Generator().manual_seed(3)

    def sample() -> dict[str, Any]:
        return {
            "images": [torch.rand(1, 3, 32, 32, generator=generator)],
            "img_masks": [torch.ones(1, dtype=torch.bool)],
            "lang_tokens": torch.randint(3, 198, (1, 6), generator=generator),
            "lang_masks": torch.ones(1, 6, dtype=torch.bool),
            "state": torch.randn(1, 7, generator=generator),
            "noise": torch.randn(1, 5, 6, generator=generator),
        }

    def forward(x: dict[str, Any]) -> Tensor:
        with torch.no_grad():
            found: Tensor = policy.model.sample_actions(**x)
        return found

    return policy.eval(), forward, [sample(), sample()]


def groot_n17() -> Built:
    """GR00TN17: a Qwen3-VL of 64 channels and a diffusion transformer of 48, four blocks."""
    from transformers import Qwen3VLConfig

    module = importlib.import_module("lerobot.policies.groot.groot_n1_7")
    module.tree = SimpleNamespace(map_structure=_map_structure)  # of dm-tree
    text = {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 16,
        "vocab_size": 200,
        "rope_scaling": {
            "mrope_interleaved": True,
            "mrope_section": [4, 2, 2],
            "rope_type": "default",
        },
    }
    vision = {
        "depth": 2,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_heads": 2,
        "out_hidden_size": 64,
        "patch_size": 4,
        "num_position_embeddings": 16,
        "deepstack_visual_indexes": [0],
    }
    backbone = Qwen3VLConfig(
        text_config=text,
        vision_config=vision,
        image_token_id=190,
        video_token_id=191,
        vision_start_token_id=192,
        vision_end_token_id=193,
    )
    module._cosmos_reason2_qwen3_vl_config = lambda: backbone
    config = module.GR00TN17Config(
        hidden_size=48,
        input_embedding_dim=48,
        backbone_embedding_dim=64,
        select_layer=2,
        max_action_dim=6,
        max_state_dim=7,
        action_horizon=5,
        max_num_embodiments=2,
        num_inference_timesteps=2,
        use_flash_attention=False,
        load_bf16=False,
        vl_self_attention_cfg={
            "num_layers": 1,
            "num_attention_heads": 4,
            "attention_head_dim": 16,
            "final_dropout": True,
            "dropout": 0.0,
            "positional_embeddings": None,
        },
        diffusion_model_cfg={
            "num_layers": 4,
            "num_attention_heads": 4,
            "attention_head_dim": 12,
            "output_dim": 48,
            "norm_type": "ada_norm",
            "interleave_self_attention": True,
            "final_dropout": True,
            "dropout": 0.0,
            "positional_embeddings": None,
        },
    )
    model = module.GR00TN17(config, load_backbone_weights=False)
    _randomise(model)
    generator = torch.Generator().manual_seed(3)
    grid = torch.tensor([[1, 4, 4]])
    words = torch.tensor([[5, 192, 190, 190, 190, 190, 193, 7, 8]])

    def sample() -> dict[str, Any]:
        return {
            "input_ids": words,
            "attention_mask": torch.ones_like(words),
            "pixel_values": torch.randn(16, 3 * 2 * 4 * 4, generator=generator),
            "image_grid_thw": grid,
            "state": torch.randn(1, 1, 7, generator=generator),
            "embodiment_id": torch.tensor([1]),
        }

    def forward(x: dict[str, Any]) -> Tensor:
        torch.manual_seed(0)
        with torch.no_grad():
            found: Tensor = model.get_action(x)["action_pred"]
        return found

    return model.eval(), forward, [sample(), sample()]


def _map_structure(function: Callable[[Any], Any], held: Any) -> Any:
    return type(held)(data={name: function(value) for name, value in held.items()})


def _plain(config: type, **given: Any) -> dict[str, Any]:
    """The defaults of a dataclass as a dict, without its checks."""
    found: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        if field.default is not dataclasses.MISSING:
            found[field.name] = field.default
        elif field.default_factory is not dataclasses.MISSING:
            found[field.name] = None
    return found | {"device": "cpu", "rtc_config": None, "compile_model": False} | given


HOSTS = {"pi05": pi05, "smolvla": smolvla, "groot_n17": groot_n17}


def verified(built: Built, binding: Any) -> dict[str, Any]:
    from frtspec.live.verify import verify

    model, forward, observations = built
    return verify(binding, model, forward, observations=observations).to_json()


def compiled(text: str) -> Any:
    """The one binding of a spec's text."""
    from frtspec.live.inmemory import bindings_of

    with TemporaryDirectory() as folder:
        path = Path(folder, "one.frt")
        path.write_text(text)
        (binding,) = bindings_of(path).values()
    return binding


def scanned(built: Built, name: str) -> dict[str, Any]:
    """The draft, what verify says of it, and seats of the catalog's binding not found."""
    from frtspec.live.scan import scan

    model, forward, observations = built
    found = scan(model, lambda: forward(observations[0]))
    here = [key(seat.seat("s")) for seat in found.seats]
    seats = importlib.import_module(f"flashrt_gen.{name}").HOST.seats(model)
    return {
        "missed": [key(seat) for seat in seats if key(seat) not in here],
        "draft": found.binding,
        "seats": [{"target": s.target, "path": s.path, "form": s.form} for s in found.seats],
        "unexplained": [row.path for row in found.left_out if not row.reason],
        "verified": verified(built, compiled(found.binding)),
    }


def key(seat: Any) -> list[Any]:
    members = list(seat.siblings.members) if seat.siblings else []
    return [seat.structure.name, seat.seam, seat.path, *members]


def main(overlay: str, name: str, what: str = "") -> None:
    """``what``: nothing for the catalog's binding, ``scan``, ``tick``, or a file with one
    binding."""
    prepare(Path(overlay))
    torch.manual_seed(7)
    built = HOSTS[name]()
    if what == "scan":
        found = scanned(built, name)
    elif what == "tick":
        from tests.hosts import lerobot_tick

        use = importlib.import_module(f"flashrt_gen.{name}.vla_tick_pipeline").USE
        found = lerobot_tick.report(built[0], built[2][0], use)
    elif what:
        found = verified(built, compiled(Path(what).read_text()))
    else:
        found = verified(built, importlib.import_module(f"flashrt_gen.{name}").HOST)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
