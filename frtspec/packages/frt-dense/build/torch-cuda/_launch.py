"""Starting the kernels on tensors: shapes, scratch, what depends on the device."""

import functools

import torch
import triton
from torch import Tensor

from ._codes import FP8, INT4, INT8
from ._few import few_rows
from ._one import one_row
from ._producers import activate_quantize, halve_rows, quantize_rows

FORMATS = {"fp8": FP8, "int8": INT8, "int4": INT4}
ACTIVATIONS = {None: 0, "silu": 1, "gelu_tanh": 2}
F8 = torch.float8_e4m3fn
GROUP = 64
"""Places of a row that share an INT4 scale."""

INTERPRETED = not isinstance(few_rows, triton.runtime.JITFunction)

GRID_ROWS = 65535
"""Most programs along the second axis of a grid."""


@functools.cache
def capability(index: int) -> int:
    """Ten times the major version and the minor: 90 for Hopper."""
    major, minor = torch.cuda.get_device_capability(index)
    return 10 * major + minor


def family(x: Tensor) -> str:
    """Which tuning table serves a tensor's device."""
    return "sm90" if x.is_cuda and capability(x.device.index) == 90 else "any"


def dependent(x: Tensor) -> bool:
    """Whether kernels may start before the one in front has ended (Hopper and later)."""
    return not INTERPRETED and x.is_cuda and capability(x.device.index) >= 90


def quantize(x: Tensor, scale: Tensor, zero: Tensor | None = None) -> Tensor:
    """FP8 codes of contiguous ``x`` under scale [1]; ``zero``, counters of a later product, is
    set to zero."""
    out = torch.empty(x.shape, dtype=F8, device=x.device)
    total = x.numel()
    pdl = dependent(x)
    block, warps = (1024, 4) if total < 1 << 20 else (4096, 8)
    quantize_rows[(triton.cdiv(total, block),)](
        x, out, scale, zero, total, ZEROS=_size(zero), BLOCK=block, ASM=not INTERPRETED, PDL=pdl, num_warps=warps,
        **_pdl(pdl),
    )  # fmt: skip
    return out


def activate(h: Tensor, act: str, scale: Tensor, gated: bool) -> Tensor:
    """FP8 codes [M, N] under scale [1] of act(gate) * up, h [M, 2 N]; ungated of act(h)."""
    rows, width = h.shape[0], h.shape[1] // (2 if gated else 1)
    out = torch.empty(rows, width, dtype=F8, device=h.device)
    pdl = dependent(h)
    block = min(2048, triton.next_power_of_2(width))
    for r in range(0, rows, GRID_ROWS):
        n = min(GRID_ROWS, rows - r)
        activate_quantize[(triton.cdiv(width, block), n)](
            h[r:], out[r:], scale, n, width, GATED=gated, ACT=ACTIVATIONS[act], BLOCK=block,
            ASM=not INTERPRETED, PDL=pdl, num_warps=8, **_pdl(pdl),
        )  # fmt: skip
    return out


def halves(x: Tensor, zero: Tensor | None = None) -> Tensor:
    """The even places of x [M, K], then the odd ones: [2, M, K / 2], as INT4 products read it."""
    m, k = x.shape
    out = torch.empty(2, m, k // 2, dtype=x.dtype, device=x.device)
    pdl = dependent(x)
    halve_rows[(triton.cdiv(k, 1024), m)](
        x, out, zero, m, k, ZEROS=_size(zero), BLOCK=1024, PDL=pdl, **_pdl(pdl)
    )
    return out


def counters(n: int, row: dict, device: torch.device, *, zeros: bool = False) -> Tensor | None:
    """Counters for a product of ``n`` columns; None where a tuning row needs none."""
    if row["split"] == 1:
        return None
    size = triton.next_power_of_2(triton.cdiv(n, row["bn"]))
    make = torch.zeros if zeros else torch.empty
    return make(size, dtype=torch.int32, device=device)


def few(
    fmt: str, x: Tensor, w: Tensor, ws: Tensor, row: dict, *, xs: Tensor | None = None,
    bias: Tensor | None = None, gated: bool = False, act: str | None = None,
    out_scale: Tensor | None = None, split_out: bool = False, count: Tensor | None = None,
    zero: Tensor | None = None,
) -> Tensor:  # fmt: skip
    """x [M, K] (INT4: [2, M, K / 2]) times a weight's codes, by the kernels for few rows.

    row        the tuning row; one without ``bm`` is for a single row of x
    count      zeroed counters, where the tuning row splits K
    zero       counters of a later product, which this one sets to zero
    split_out  write [2, M, N / 2]
    """
    m, k = (x.shape[1], 2 * x.shape[2]) if fmt == "int4" else x.shape
    n = w.shape[0] // 2 if gated else w.shape[0]
    dtype = torch.bfloat16 if out_scale is None else F8
    shape = (2, m, n // 2) if split_out else (m, n)
    out = torch.empty(shape, dtype=dtype, device=x.device)
    split, pdl, bm = row["split"], dependent(x), row.get("bm")
    tiles = triton.cdiv(n, row["bn"])
    part = None
    if split > 1:
        size = split * tiles * row["bn"] * (bm or 1) * (2 if gated else 1)
        part = torch.empty(size, dtype=torch.float32, device=x.device)
    shared = {
        "FORMAT": FORMATS[fmt], "GATED": gated, "ACT": ACTIVATIONS[act], "BIAS": bias is not None,
        "REQUANT": out_scale is not None, "BN": row["bn"], "BK": row["bk"], "SPLIT": split,
        "EVEN": k % (row["bk"] * split) == 0, "STAGES": row["stages"],
        "LINES": row["lines"] if pdl else 0, "ZEROS": _size(zero),
        "ASM": not INTERPRETED, "PDL": pdl, "num_warps": row["warps"], **_pdl(pdl),
    }  # fmt: skip
    if bm is None:
        one_row[(tiles, split)](
            x, w, ws, xs, bias, out, out_scale, part, count, zero, n, k, **shared
        )
    else:
        few_rows[(tiles, split)](
            x, w, ws, xs, bias, out, out_scale, part, count, zero, m, n, k, w.shape[1],
            k // GROUP, BM=bm, HALVES=split_out, GROUP=GROUP, EXACT=row.get("exact", 0), **shared,
        )  # fmt: skip
    return out


def _size(zero: Tensor | None) -> int:
    return 0 if zero is None else zero.numel()


def _pdl(on: bool) -> dict:
    return {"launch_pdl": True} if on else {}
