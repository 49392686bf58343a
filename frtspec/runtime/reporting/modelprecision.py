"""The precision of a plan in two flat tables: one of weights, one of activations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from frtspec.runtime.records import SeatRecord


@dataclass(frozen=True)
class PrecisionSpec:
    """How one tensor is quantised.

    granularity     per_tensor, per_channel or per_group (then ``group_size``, where known)
    scale_source    calibration (static), runtime_dynamic, weights (from the weights alone),
                    none (the dtype has no scale)
    scale           flat, float32 steps; None where the source is not static
    """

    dtype: str
    granularity: str = "per_tensor"
    scheme: str = "symmetric"
    group_size: int | None = None
    scale_source: str = "none"
    scale: tuple[float, ...] | None = None
    zero_point: tuple[float, ...] | None = None
    calibration_method: str | None = None
    calibration_samples: int | None = None
    calibration_percentile: float | None = None
    axis: int | None = None


class ModelPrecisionSpec(dict[str, Any]):
    """seat -> its packs, points and rows (see ``precision_spec``), and as flat tables:

    activation_specs   ``path|point`` -> PrecisionSpec, of points that bound seats quantise
    weight_specs       ``path|pack`` -> PrecisionSpec, of quantised packs
    source             ``calibration`` where some scale is static, else ``none``
    """

    def __init__(self, seats: Mapping[str, Any], records: Sequence[SeatRecord]) -> None:
        super().__init__(seats)
        self._paths = {record.name: record.seat.path for record in records}

    @property
    def activation_specs(self) -> dict[str, PrecisionSpec]:
        return dict(self._activations())

    @property
    def weight_specs(self) -> dict[str, PrecisionSpec]:
        return dict(self._weights())

    @property
    def source(self) -> str:
        static = any(s.scale_source == "calibration" for s in self.activation_specs.values())
        return "calibration" if static else "none"

    def to_json(self) -> dict[str, Any]:
        """``source`` and both tables as plain data."""
        return {
            "source": self.source,
            "activation_specs": {k: asdict(v) for k, v in self.activation_specs.items()},
            "weight_specs": {k: asdict(v) for k, v in self.weight_specs.items()},
        }

    def _activations(self) -> Iterator[tuple[str, PrecisionSpec]]:
        for seat, found in self.items():
            for point, told in found["points"].items():
                if told["method"] == "host":
                    continue
                static = told["method"] == "static"
                measured = told["measured"][0] if static and told["measured"] else {}
                sources = {"static": "calibration", "at each call": "runtime_dynamic"}
                yield (
                    f"{self._paths[seat]}|{point}",
                    PrecisionSpec(
                        told["dtype"],
                        _granularity(told["granularity"]),
                        scale_source=sources.get(told["method"], "none"),
                        scale=_flat(told["scale"]),
                        calibration_method=measured.get("statistic"),
                        calibration_samples=measured.get("samples"),
                        calibration_percentile=measured.get("percentile"),
                        axis=_axis(told["granularity"]),
                    ),
                )

    def _weights(self) -> Iterator[tuple[str, PrecisionSpec]]:
        for seat, found in self.items():
            for pack, told in found["packs"].items():
                yield (
                    f"{self._paths[seat]}|{pack}",
                    PrecisionSpec(
                        told["dtype"],
                        _granularity(told["granularity"]),
                        scale_source="weights",
                        scale=_flat(told["scale"]),
                        axis=0 if "channel" in told["granularity"] else None,
                    ),
                )


def _granularity(told: str | None) -> str:
    per = (told or "per tensor").removeprefix("per ")
    return f"per_{per}" if per in ("tensor", "channel") else "per_group"


def _axis(told: str | None) -> int | None:
    return -1 if told == "per channel" else None


def _flat(scale: Sequence[float] | None) -> tuple[float, ...] | None:
    return None if scale is None else tuple(scale)
