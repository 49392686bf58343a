"""What generated references call: norms without weights, and how points are seen.

Plain torch in the dtype of the argument. References upcast before they call a
norm; nothing here changes a dtype by itself.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as nnf

from frtspec.runtime import numerics
from frtspec.runtime.errors import Refusal

Record = Callable[[str, Tensor], None]
"""``record(point, tensor)``: called by a reference at each of its points."""

SeamCall = Callable[..., Any]
"""``fn(*sources)``: what runs in place of a seam of a reference."""


Part = Callable[..., Tensor]
"""``fn(*values)``: what stays the host's inside a structure."""

Parts = Callable[..., Sequence[Tensor]]
"""A ``Part`` with several results."""


Group = Mapping[str, Any]
"""What an inner structure takes by keyword: its slots, variants and params."""


def once(part: Callable[..., Any]) -> Callable[..., Any]:
    """A part of several results that, called twice on the same tensors, computes once."""
    seen: list[tuple[tuple[Any, ...], Any]] = []

    def call(*values: Any) -> Any:
        for given, result in seen:
            if len(given) == len(values) and all(map(operator.is_, given, values)):
                return result
        result = part(*values)
        seen.append((values, result))
        return result

    return call


def inner(
    slot: str,
    function: Callable[..., Any],
    group: Group | None,
    record: Record,
    instead: SeamCall | None = None,
    **settled: str,
) -> Callable[..., Tensor]:
    """How a structure calls the one in a slot of it. Several outputs come as a tuple.

    slot     its name; its points are recorded as ``slot.point``
    group    what it takes by keyword; None where the slot does not exist
    instead  runs in its place, on the same tensors
    settled  variants that the outer structure has chosen

    Called twice on the same tensors it computes once.
    """
    seen: list[tuple[tuple[Any, ...], dict[str, Any], Any]] = []

    def within(point: str, value: Tensor) -> None:
        record(f"{slot}.{point}", value)

    def compute(*values: Tensor, **named: Tensor) -> Any:
        if instead is not None:
            return instead(*values, **named)
        if group is None:
            raise ValueError(f"{slot} is needed here and was not given")
        twice = sorted(group.keys() & settled.keys())
        if twice:
            raise ValueError(f"{', '.join(twice)} of {slot} is settled: leave it out")
        return function(*values, **named, **group, **settled, record=within)

    def call(*values: Tensor, **named: Tensor) -> Any:
        for before, names, result in seen:
            if len(before) == len(values) and names.keys() == named.keys():
                pairs = [*zip(before, values, strict=True)]
                pairs += [(value, named[name]) for name, value in names.items()]
                if all(one is other for one, other in pairs):
                    return result
        result = compute(*values, **named)
        seen.append((values, named, result))
        return result

    return call


def ignore(point: str, value: Tensor) -> None:
    """The ``Record`` that keeps nothing."""


# ---------------------------------------------------------------- norms

_LAST = (-1,)


def rms_norm(x: Tensor, eps: float, *, dim: tuple[int, ...] = _LAST) -> Tensor:
    """``x`` over the root of its mean square along ``dim``; keeps the shape."""
    return x * torch.rsqrt(x.pow(2).mean(dim, keepdim=True) + eps)


def layer_norm(
    x: Tensor,
    eps: float,
    w: Tensor | None = None,
    b: Tensor | None = None,
    *,
    dim: tuple[int, ...] = _LAST,
) -> Tensor:
    """``x`` with mean 0 and variance 1 along ``dim`` (biased variance), times ``w``, plus ``b``."""
    variance = x.var(dim, correction=0, keepdim=True)
    out = (x - x.mean(dim, keepdim=True)) * torch.rsqrt(variance + eps)
    if w is not None:
        out = out * w
    return out if b is None else out + b


def native_layer_norm(
    x: Tensor, eps: float, w: Tensor | None = None, b: Tensor | None = None
) -> Tensor:
    """``layer_norm`` over the last axis by torch's own kernel, as ``nn.LayerNorm`` runs it."""
    return nnf.layer_norm(x, x.shape[-1:], w, b, eps)


def native_rms_norm(x: Tensor, eps: float, w: Tensor | None = None) -> Tensor:
    """``rms_norm`` over the last axis by torch's own kernel, as ``nn.RMSNorm`` runs it."""
    return nnf.rms_norm(x, x.shape[-1:], w, eps)


def l2norm(x: Tensor, eps: float, *, dim: tuple[int, ...] = _LAST) -> Tensor:
    """``x`` over the root of its sum of squares along ``dim``; keeps the shape."""
    return x * torch.rsqrt(x.pow(2).sum(dim, keepdim=True) + eps)


# ---------------------------------------------------------------- attention


def causal_mask(scores: Tensor) -> Tensor:
    """``scores`` [..., queries, keys] with -inf where a key comes after its query.

    The last query meets the last key, so fewer queries than keys are the latest ones.
    """
    queries, keys = scores.shape[-2:]
    seen = torch.ones(queries, keys, dtype=torch.bool, device=scores.device)
    return scores.masked_fill(~seen.tril(keys - queries), float("-inf"))


def rope_half(x: Tensor, cos: Tensor, sin: Tensor, *, rotary: int, heads: int = 0) -> Tensor:
    """Rotary embedding of the first ``rotary`` channels of ``x`` [..., D], halves paired.

    cos, sin  [..., rotary] or [..., rotary / 2]
    heads     the axis of ``x``, from the end, that the tables lack; 0: none

    Channels from ``rotary`` on are kept.
    """
    part, rest = x[..., :rotary], x[..., rotary:]
    first, second = part.chunk(2, dim=-1)
    cos, sin = (
        _table(table if table.shape[-1] == rotary else torch.cat([table, table], dim=-1), heads)
        for table in (cos, sin)
    )
    out = part * cos + torch.cat([-second, first], dim=-1) * sin
    return torch.cat([out, rest.to(out.dtype)], dim=-1)


def rope_interleaved(x: Tensor, cos: Tensor, sin: Tensor, *, rotary: int, heads: int = 0) -> Tensor:
    """Like ``rope_half``, with neighbouring channels paired."""
    part, rest = x[..., :rotary], x[..., rotary:]
    pairs = part.reshape(*part.shape[:-1], rotary // 2, 2)
    turned = torch.stack([-pairs[..., 1], pairs[..., 0]], dim=-1).flatten(-2)
    cos, sin = (
        _table(table if table.shape[-1] == rotary else table.repeat_interleave(2, dim=-1), heads)
        for table in (cos, sin)
    )
    out = part * cos + turned * sin
    return torch.cat([out, rest.to(out.dtype)], dim=-1)


def _table(table: Tensor, heads: int) -> Tensor:
    return table.unsqueeze(heads) if heads else table


# ---------------------------------------------------------------- routing


def spread(x: Tensor, places: Tensor, size: int) -> Tensor:
    """``x`` [..., K] at ``places`` [..., K] of a last axis of ``size``; zeros elsewhere."""
    return x.new_zeros(*x.shape[:-1], size).scatter(-1, places.long(), x)


# ---------------------------------------------------------------- formats


def quantize(x: Tensor, format: str, scale: Tensor | float) -> Tensor:
    """Codes of ``x`` under a given scale, in ``fp8_e4m3`` or ``int8``."""
    code = {"fp8_e4m3": numerics.to_fp8, "int8": numerics.to_int8}[format]
    return code(x, torch.as_tensor(scale, dtype=torch.float32, device=x.device))


# ---------------------------------------------------------------- what a call may ask for


def check_variants(structure: str, known: Mapping[str, Sequence[str]], **given: str) -> None:
    """Whether every variant has a value that the structure knows; raises Refusal."""
    for axis, value in given.items():
        if value not in known[axis]:
            raise unknown_variant(structure, axis, value, known)


def check_absent(structure: str, when: str, **values: object) -> None:
    """Refuse what exists only ``when`` a condition holds, called where it does not."""
    given = [name for name, value in values.items() if value is not None]
    if given:
        raise Refusal(
            "structure.given",
            f"{structure}: {', '.join(given)} given, which exists only where {when}",
            fix=f"leave it out, or choose the variant: {when}",
        )


def unknown_variant(
    structure: str, axis: str, value: object, known: Mapping[str, Sequence[str]]
) -> Refusal:
    """The error for a variant value that a structure does not have."""
    return Refusal(
        "structure.variant",
        f"{structure} has no variant {axis} = {value}; known: {', '.join(known[axis])}",
        fix=f"pass one of the known values for {axis}",
    )
