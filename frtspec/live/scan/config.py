"""Sizes as expressions in the host's config, where its values say so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torch import nn

from frtspec.live.scan.found import FoundSeat
from frtspec.live.scan.rebuild import dims_of, rebuilt
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

_HEADS = (
    "num_attention_heads",
    "num_key_value_heads",
    "num_heads",
    "linear_num_key_heads",
    "linear_num_value_heads",
)
_WIDTHS = ("head_dim", "attention_head_dim", "linear_key_head_dim", "linear_value_head_dim")
_NO_SIZES = ("_id", "_ids", "_token", "_layers", "_positions", "_embeddings", "_window", "_length")
_COUNTS = ("num_hidden_layers", "num_layers", "depth", "n_layer", "num_single_layers")


@dataclass(frozen=True)
class Expression:
    """A product of config fields, and a name for the dim that holds it.

    ``fields``: (path of the config inside the root's, field).
    """

    name: str
    fields: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        return " * ".join(_text(where, name) for where, name in self.fields)

    def value(self, root: Any) -> int | None:
        """What it gives for a config; None where a field is no whole number there."""
        out = 1
        for where, name in self.fields:
            config = root
            for part in where.split(".") if where else ():
                config = _get(config, part)
            found = _get(config, name)
            if type(found) is not int:
                return None
            out *= found
        return out


class Configs:
    """The config of a model and those inside it, for the modules below each."""

    def __init__(self, tree: Tree) -> None:
        self.root = getattr(tree.model, "config", None)
        self._paths = {id(config): path for path, config in _nested(self.root)}
        self._tree = tree

    @cached_property
    def other(self) -> tuple[nn.Module, Any] | None:
        """The model's class with other sizes, and its config."""
        return rebuilt(self._tree.model)

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

    def dims(self, seat: FoundSeat) -> dict[str, Expression | int]:
        """Each dim of a seat as an expression that is right on this host and on one of
        other sizes; as a number where there is none."""
        elsewhere = {} if self.other is None else dims_of(seat, self.other[0])
        return {dim: self._dim(seat, dim, value, elsewhere) for dim, value in seat.dims.items()}

    def _dim(
        self, seat: FoundSeat, dim: str, value: int, elsewhere: Mapping[str, int]
    ) -> Expression | int:
        found = list(dict.fromkeys(self._sizes(seat.path, value)))
        if self.other is not None and dim in elsewhere:
            held = [e for e in found if e.value(self.other[1]) == elsewhere[dim]]
            return held[0] if held else value
        return found[0] if len(found) == 1 else value

    def _sizes(self, path: str, value: int) -> Iterator[Expression]:
        """Everything of the configs around a module that has this value."""
        for where, config in self._near(path):
            fields = [n for n, held in _fields(config) if type(held) is int and held > 1]
            known = [n for n in _SIZES if n in fields]
            rest = [n for n in fields if n not in known and not n.endswith(_NO_SIZES)]
            for name in (*known, *rest):
                if _get(config, name) == value:
                    yield _expression(where, (name,))
            for heads in _HEADS:
                for width in _WIDTHS:
                    found = _expression(where, (heads, width))
                    if found.value(self.root) == value:
                        yield found

    def count(self, path: str, value: int) -> Expression | None:
        """How many layers: only where the config says so."""
        for where, config in self._near(path):
            for name in _COUNTS:
                if _get(config, name) == value:
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


def _get(config: Any, name: str) -> Any:
    return config.get(name) if isinstance(config, Mapping) else getattr(config, name, None)


def _text(where: str, name: str) -> str:
    return f"config.{where}.{name}" if where else f"config.{name}"


def _expression(where: str, names: tuple[str, ...]) -> Expression:
    prefix = where.split(".")[-1].removesuffix("_config") if where else ""
    name = "_by_".join(n.removeprefix("num_") if len(names) > 1 else n for n in names)
    return Expression(
        f"{prefix}_{name}" if prefix else name, tuple((where, name) for name in names)
    )
