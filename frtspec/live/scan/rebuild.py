"""The same class built anew with other sizes: what shows which config field a size is.

Equal numbers prove nothing where a config holds the same number twice. So the model's
class is built once more, on the meta device and with few layers, from a config in which
sizes that may coincide are told apart; an expression stands where it is right in both.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from math import prod
from typing import Any

import torch
from torch import nn

from frtspec.dims import DimError, solve
from frtspec.live.scan.found import FoundSeat
from frtspec.runtime.spec import Weight

FACTORS = {
    "hidden_size": 6,
    "embed_dim": 6,
    "dim": 6,
    "d_model": 6,
    "intermediate_size": 5,
    "ffn_dim": 5,
    "moe_intermediate_size": 7,
    "shared_expert_intermediate_size": 11,
    "text_dim": 7,
    "joint_attention_dim": 7,
    "cross_attention_dim": 7,
    "text_embed_dim": 7,
    "vocab_size": 13,
    "num_attention_heads": 2,
    "num_heads": 2,
    "linear_num_value_heads": 2,
}
"""Field -> what it is multiplied by. Heads of keys and widths of heads stay, so that heads
still divide evenly."""

LAYERS = 8
"""A model with more layers is built with so many."""

_COUNTS = ("num_hidden_layers", "num_layers", "depth")


def rebuilt(model: nn.Module) -> tuple[nn.Module, Any] | None:
    """(the class with other sizes, its config); None where it can't be built so."""
    config = getattr(model, "config", None)
    if config is None:
        return None
    try:
        with torch.device("meta"):
            if isinstance(config, Mapping):
                other = _altered_fields(dict(config))
                made = type(model).from_config(other)  # type: ignore[attr-defined]
            else:
                other = copy.deepcopy(config)
                _alter(other)
                made = type(model)(other)
    except Exception:  # noqa: BLE001 - a config that the class refuses proves nothing, and harms nothing
        return None
    return (made, made.config) if isinstance(made, nn.Module) else None


def _alter(config: Any) -> None:
    fields = {n: v for n, v in vars(config).items() if not n.startswith("_") and v is not None}
    for name, value in _altered_fields(fields).items():
        if value is not fields[name]:
            setattr(config, name, value)
    for name, value in fields.items():
        if name.endswith("_config") and hasattr(value, "__dict__"):
            _alter(value)


def _altered_fields(fields: dict[str, Any]) -> dict[str, Any]:
    count = next((fields[n] for n in _COUNTS if type(fields.get(n)) is int), None)
    out = {}
    for name, value in fields.items():
        if type(value) is int and name in FACTORS:
            value = value * FACTORS[name]
        elif count is not None and count > LAYERS and name in _COUNTS:
            value = LAYERS
        elif (
            count is not None and count > LAYERS and isinstance(value, list) and len(value) == count
        ):
            value = value[:LAYERS]
        out[name] = value
    return out


def dims_of(seat: FoundSeat, model: nn.Module) -> Mapping[str, int]:
    """The dims of a seat on another model of its class; empty where it is not there."""
    shapes, sizes = {}, {}
    for slot, held in seat.slots.items():
        several = held if isinstance(held, tuple) else (held,)
        try:
            found = [_size(model, weight) for weight in several]
        except AttributeError:
            return {}
        shapes[slot] = seat.structure.shapes[slot]
        sizes[slot] = found if isinstance(held, tuple) else found[0]
    try:
        return dict(solve(shapes, sizes).values)
    except DimError:
        return {}


def _size(model: nn.Module, weight: Weight) -> tuple[int, ...]:
    assert weight.path is not None
    shape = tuple(model.get_parameter(weight.path).shape)
    if weight.view == "chunks":
        shape = (shape[0] // (len(weight.args) - 1), *shape[1:])
    if weight.view == "part":
        shape = (shape[0] // int(weight.args[1]), *shape[1:])
    if weight.view == "flat":
        shape = (shape[0], prod(shape[1:]))
    return (*shape[:-2], shape[-1], shape[-2]) if weight.layout == "out_in" else shape
