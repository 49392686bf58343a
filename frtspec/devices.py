"""What devices can do at most: measured ceilings, for rooflines.

Measured, not from a data sheet: what a copy and a large product reach is what a kernel can
be held against.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Device:
    """One device. ``bandwidth``: bytes a second of a copy, read and written;
    ``peak``: dtype of the product -> operations a second; ``measured``: where and when."""

    key: str
    name: str
    bandwidth: float
    peak: Mapping[str, float]
    measured: str


DEVICES: Mapping[str, Device] = {
    device.key: device
    for device in (
        Device(
            "h200",
            "NVIDIA H200",
            4.17e12,
            {"bf16": 763e12, "fp8_e4m3": 1387e12},
            "device copy, torch.matmul and torch._scaled_mm (fast accumulation) of large "
            "matrices, November 2026",
        ),
    )
}
