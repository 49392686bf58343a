"""torch dtypes under the names that specs use."""

from __future__ import annotations

import torch

DTYPES = {
    "f64": torch.float64,
    "f32": torch.float32,
    "fp16": torch.float16,
    "bf16": torch.bfloat16,
    "fp8_e4m3": torch.float8_e4m3fn,
    "fp8_e5m2": torch.float8_e5m2,
    "int8": torch.int8,
    "int32": torch.int32,
    "int64": torch.int64,
    "bool": torch.bool,
}
"""Name -> dtype. Formats of several values a byte have no dtype of torch."""

NAMES = {dtype: name for name, dtype in DTYPES.items()}
"""Dtype -> name."""
