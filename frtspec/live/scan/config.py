"""Sizes as expressions in the host's config, where its values say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from frtspec.live.scan.tree import Tree

_SIZES = (
    "hidden_size",
    "intermediate_size",
    "moe_intermediate_size",
    "shared_expert_intermediate_size",
    "num_experts",
    "num_experts_per_tok",
    "embed_dim",
    "dim",
    "d_model",
    "ffn_dim",
    "out_hidden_size",
    "cross_attention_dim",
    "text_dim",
    "joint_attention_dim",
)
"""Fields that are a size by themselves, the likelier first where two have one value."""

_HEADS = ("num_attention_heads", "num_key_value_heads", "num_heads", "attention_heads")
_WIDTHS = ("head_dim", "attention_head_dim", "head_size")
_COUNTS = ("num_hidden_layers", "num_layers", "depth", "n_layer", "num_single_layers")


@dataclass(frozen=True)
class Expression:
    """A config expression, and a name for the dim that holds it."""

    name: str
    text: str


class Configs:
    """The config of a model and those inside it, for the modules below each."""

    def __init__(self, tree: Tree) -> None:
        self.root = getattr(tree.model, "config", None)
        self._paths = {id(config): path for path, config in _nested(self.root)}
        self._tree = tree

    def _near(self, path: str) -> list[tuple[str, Any]]:
        """(path from the root's config, config): the one of the module around ``path`` first."""
        if self.root is None:
            return []
        found: list[tuple[str, Any]] = []
        while True:
            module: nn.Module | None = self._tree.modules.get(path)
            own = getattr(module, "config", None)
            if own is not None and id(own) in self._paths:
                found.append((self._paths[id(own)], own))
            if not path:
                break
            path = path.rpartition(".")[0]
        return list({where: (where, config) for where, config in found}.values())

    def size(self, path: str, value: int) -> Expression | None:
        """What of the config around a module has this value."""
        for where, config in self._near(path):
            for name in _SIZES:
                if _field(config, name) == value:
                    return _expression(where, (name,))
            for heads in _HEADS:
                for width in _WIDTHS:
                    count, each = _field(config, heads), _field(config, width)
                    if count and each and count * each == value:
                        return _expression(where, (heads, width))
        return None

    def count(self, path: str, value: int) -> Expression | None:
        """How many layers: only where the config says so."""
        for where, config in self._near(path):
            for name in _COUNTS:
                if _field(config, name) == value:
                    return _expression(where, (name,))
        return None

    def number(self, path: str, value: float) -> str | None:
        """A norm's eps in the config: the one field of such a name with this value."""
        for where, config in self._near(path):
            names = [n for n, held in _fields(config) if "eps" in n and held == value]
            if names:
                return _text(where, min(names, key=len))
        return None

    def per_layer(self, path: str, count: int) -> Iterator[tuple[str, Sequence[Any]]]:
        """Lists of the config with one entry a layer: (expression, entries)."""
        for where, config in self._near(path):
            for name, held in _fields(config):
                if isinstance(held, list | tuple) and len(held) == count:
                    yield _text(where, name), held


def _nested(config: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    if config is None:
        return
    yield path, config
    for name, held in _fields(config):
        if name.endswith("_config") and not isinstance(held, str | int | float | bool | Mapping):
            yield from _nested(held, f"{path}.{name}" if path else name)


def _fields(config: Any) -> list[tuple[str, Any]]:
    held = dict(config) if isinstance(config, Mapping) else dict(vars(config))
    return [(n, v) for n, v in held.items() if not n.startswith("_") and v is not None]


def _field(config: Any, name: str) -> int | None:
    held = config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)
    return held if type(held) is int else None


def _text(where: str, name: str) -> str:
    return f"config.{where}.{name}" if where else f"config.{name}"


def _expression(where: str, names: tuple[str, ...]) -> Expression:
    prefix = where.split(".")[-1].removesuffix("_config") if where else ""
    name = (
        "_by_".join(names) if len(names) == 1 else "_".join(n.removeprefix("num_") for n in names)
    )
    return Expression(
        f"{prefix}_{name}" if prefix else name, " * ".join(_text(where, n) for n in names)
    )
