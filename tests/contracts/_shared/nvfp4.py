"""NVFP4 as the packages take it: E2M1 codes two a byte, one UE4M3 scale for 16 along a row.

The even column lies in the low half of a byte. Scales lie in tiles of 128 rows by 4 blocks,
512 bytes each: within a tile row r and block b are at (r % 32) * 16 + (r // 32) * 4 + b; the tiles
of one band of 128 rows follow each other. Rows and blocks that pad a tile are zero.
"""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK = 16
LIMIT = 6.0
"""The largest value of E2M1."""

VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
# Between two codes the middle goes to the even one: a middle that belongs to the code above
# is entered just below itself.
_MIDDLES = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)


def swizzled_bytes(rows: int, columns: int) -> int:
    """Bytes of the scales of [rows, columns] values."""
    return -(-rows // 128) * -(-(columns // BLOCK) // 4) * 512


def _positions(rows: int, blocks: int, device: torch.device) -> Tensor:
    """Where the scale of each row and block lies: int64 [rows, blocks]."""
    row = torch.arange(rows, device=device)[:, None]
    block = torch.arange(blocks, device=device)[None, :]
    tile = row // 128 * -(-blocks // 4) + block // 4
    return tile * 512 + row % 32 * 16 + row % 128 // 32 * 4 + block % 4


def swizzle(scales: Tensor) -> Tensor:
    """Bytes of scales, uint8 [rows, blocks], in tiles: uint8 [swizzled_bytes]."""
    rows, blocks = scales.shape
    out = scales.new_zeros(swizzled_bytes(rows, blocks * BLOCK))
    out[_positions(rows, blocks, scales.device).reshape(-1)] = scales.reshape(-1)
    return out


def unswizzle(scales: Tensor, rows: int, columns: int) -> Tensor:
    """The bytes of the tiles as uint8 [rows, columns / 16]."""
    return scales.reshape(-1)[_positions(rows, columns // BLOCK, scales.device)]


def quantize(x: Tensor) -> tuple[Tensor, Tensor]:
    """Codes uint8 [rows, K / 2] and tiled scales of ``x`` [rows, K].

    The scale of a block is its largest magnitude over 6, rounded to E4M3.
    """
    rows, columns = x.shape
    blocks = x.float().reshape(rows, columns // BLOCK, BLOCK)
    scales = (blocks.abs().amax(dim=2) / LIMIT).clamp(max=448.0).to(torch.float8_e4m3fn)
    divisor = scales.float()[..., None]
    scaled = torch.where(divisor > 0, blocks / divisor, 0.0).reshape(rows, columns)
    return pack(encode(scaled)), swizzle(scales.view(torch.uint8))


def encode(x: Tensor) -> Tensor:
    """Codes of E2M1 of float32 values, one a byte: nearest, halves to the even code."""
    size = x.abs()
    code = torch.zeros_like(size, dtype=torch.uint8)
    for below, middle in enumerate(_MIDDLES):
        code += (size > middle) if below % 2 == 0 else (size >= middle)
    return torch.where(torch.signbit(x), code | 8, code)


def pack(codes: Tensor) -> Tensor:
    """Two codes a byte, the even column in the low half."""
    return codes[:, 0::2] | (codes[:, 1::2] << 4)


def unpack(packed: Tensor) -> Tensor:
    """The values of codes uint8 [rows, K / 2] without their scales: float32 [rows, K]."""
    codes = torch.stack((packed & 15, packed >> 4), dim=-1).reshape(packed.shape[0], -1)
    table = torch.tensor(VALUES + tuple(-one for one in VALUES), device=packed.device)
    return table[codes.long()]


def dequantize(packed: Tensor, scales: Tensor) -> Tensor:
    """Values of codes uint8 [rows, K / 2] under their tiled scales: float32 [rows, K]."""
    rows, columns = packed.shape[0], packed.shape[1] * 2
    blocks = unswizzle(scales, rows, columns).view(torch.float8_e4m3fn).float()
    return unpack(packed) * blocks.repeat_interleave(BLOCK, dim=1)
