"""What is known about the hosts that flash-rt's bindings name, and from where.

The source says which parameter fills a slot and which module it means. A seat needs
more: the model's class, where the norm rounds, its eps, that the MLP is called at all.
None of it is guessed. ``SETTLED`` holds what was looked up in the host's own classes;
``tests/importers/test_settled.py`` builds each class at the binding's sizes and proves
every line. A binding that is not there, or says other paths, is imported unverified.

Where a point lies follows one rule, proven with the rest: the value after the norm is
the input of the MLP, the value before the last product the input of the module whose
weight that product takes, the region's ``x`` the input of the module that holds the
norm's weight, and its ``y`` the output of the module that the source names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Settled:
    """What a verified seat needs beyond the source.

    layer, mlp  module paths that the source has to name, for the facts to be about it
    classes     of the model; ``mlp_class`` of the seat's module
    versions    of the package that the facts hold for
    variants    axes that the source leaves open, or does not know
    eps         where the config has it; None: the structure's default is the host's
    activation  the fact to be checked, and the module it is about
    unbiased    modules without bias, below the seat
    package     that the class is of
    root        where the source's weight paths start
    narrowed    why the source's range is held to ``versions``
    """

    layer: str
    mlp: str
    classes: tuple[str, ...]
    mlp_class: str
    versions: str
    variants: Mapping[str, str]
    eps: str | None
    activation: tuple[str, str]
    unbiased: tuple[str, ...]
    package: str = "transformers"
    root: str = ""
    narrowed: str = (
        "transformers 5.0 to 5.12 don't load beside the `kernels` package that is needed here, "
        "and what lies below is not tested"
    )


RANGE = ">=5.13,<6"
"""Versions of transformers that were verified, at both ends."""

LEROBOT_RANGE = ">=0.5.1,<0.6"
"""lerobot 0.5.1 alone, with the transformers 5.3.0 that it pins."""

LEROBOT_NARROWED = (
    "lerobot 0.5.0 takes any transformers from 5.3 on, and what was looked at is 5.3.0, which "
    "0.5.1 pins"
)

_GATED = ("gate_proj", "up_proj", "down_proj")


def _decoder(classes: tuple[str, ...], mlp_class: str, layer: str, eps: str) -> Settled:
    return Settled(
        layer=layer,
        mlp=f"{layer}.mlp",
        classes=classes,
        mlp_class=mlp_class,
        versions=RANGE,
        variants={"norm_rounding": "before_weight"},
        eps=eps,
        activation=("silu", "act_fn"),
        unbiased=_GATED,
    )


def _tower(tower: str, policy: str, mlp_class: str, eps: str, root: str) -> Settled:
    """A vision tower of a lerobot policy."""
    return Settled(
        layer=f"{tower}.encoder.layers.{{i}}",
        mlp=f"{tower}.encoder.layers.{{i}}.mlp",
        classes=(policy,),
        mlp_class=mlp_class,
        versions=LEROBOT_RANGE,
        variants={"norm_affine": "learned"},
        eps=eps,
        activation=("gelu_tanh", "activation_fn"),
        unbiased=(),
        package="lerobot",
        root=root,
        narrowed=LEROBOT_NARROWED,
    )


_PI05 = "model.paligemma_with_expert.paligemma.model"

SETTLED: Mapping[str, Settled] = {
    "qwen25_15b": _decoder(
        ("Qwen2ForCausalLM",), "Qwen2MLP", "model.layers.{i}", "config.rms_norm_eps"
    ),
    "qwen3_8b": _decoder(
        ("Qwen3ForCausalLM",), "Qwen3MLP", "model.layers.{i}", "config.rms_norm_eps"
    ),
    "qwen3_vl_8b_text": _decoder(
        ("Qwen3VLForConditionalGeneration",),
        "Qwen3VLTextMLP",
        "model.language_model.layers.{i}",
        "config.text_config.rms_norm_eps",
    ),
    "qwen3_vl_8b_vision": Settled(
        layer="model.visual.blocks.{i}",
        mlp="model.visual.blocks.{i}.mlp",
        classes=("Qwen3VLForConditionalGeneration",),
        mlp_class="Qwen3VLVisionMLP",
        versions=RANGE,
        variants={"norm_affine": "learned"},
        eps=None,
        activation=("gelu_tanh", "act_fn"),
        unbiased=(),
    ),
    "pi05_prefix": Settled(
        layer=f"{_PI05}.language_model.layers.{{i}}",
        mlp=f"{_PI05}.language_model.layers.{{i}}.mlp",
        classes=("PI05Policy",),
        mlp_class="GemmaMLP",
        versions=LEROBOT_RANGE,
        variants={"norm_rounding": "after_weight"},
        eps="model.model.paligemma_with_expert.paligemma.config.text_config.rms_norm_eps",
        activation=("gelu_tanh", "act_fn"),
        unbiased=_GATED,
        package="lerobot",
        root="model",
        narrowed=LEROBOT_NARROWED,
    ),
    "pi05_vision": _tower(
        f"{_PI05}.vision_tower.vision_model",
        "PI05Policy",
        "SiglipMLP",
        "model.model.paligemma_with_expert.paligemma.config.vision_config.layer_norm_eps",
        "model",
    ),
    "smolvla_vision": _tower(
        "model.vlm_with_expert.vlm.model.vision_model",
        "SmolVLAPolicy",
        "SmolVLMVisionMLP",
        "model.model.vlm_with_expert.config.vision_config.layer_norm_eps",
        "",
    ),
}
"""By the name of flash-rt's binding."""


@dataclass(frozen=True)
class PathFact:
    """A path that does not hold for all that the source's range allows."""

    package: str
    contains: str
    says: str


PATHS: tuple[PathFact, ...] = (
    PathFact(
        "lerobot",
        "vision_tower.vision_model.",
        "transformers 5.6 and later have no level `vision_model` there",
    ),
)

UNSEEN: Mapping[str, str] = {
    "isaac_gr00t": "isaac_gr00t is on no package index: nothing of it could be looked at",
}
"""Packages whose classes could not be looked at, and why."""

_PARTS = (
    "SmolVLA runs the norm and the MLP of a layer one by one: no module of it gives the region's y"
)

OPEN: Mapping[str, str] = {
    "pi05": "the norm makes scale, shift and gate inside itself: no module of the host gives them "
    "to the region",
    "smolvla_base": _PARTS,
    "smolvla_expert": _PARTS,
    "smolvla_pipeline": "`smolvla_base` is no version of lerobot, and the pipeline names its places "
    "in words",
    "smolvla_tick": "`smolvla_base` is no version of lerobot, and the pipeline names its places in "
    "words",
}
"""Bindings whose host was looked at, and why they can't stand as verified all the same."""

SEEN: Mapping[str, str] = {"lerobot": "0.5.1"}
"""Packages whose classes were looked at in one version: every layer's path was found there."""

NEVER_CALLED: Mapping[str, str] = {
    "model.vlm_with_expert.vlm.model.text_model.layers.{i}": "lerobot",
    "model.vlm_with_expert.lm_expert.layers.{i}": "lerobot",
}
"""Modules whose own ``forward`` the host never calls: it runs their children one by one."""
