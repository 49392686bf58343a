"""Number formats against torchao's quantisers: codes and scales bit for bit.

Where the two differ by rule, the test says by which:

- A row, group or tensor of zeros has the scale 1 here; torchao divides zero by zero (FP8)
  or takes a least scale it was told.
- Whole numbers are divided by their scale here and multiplied by its reciprocal there: a
  value that lies within a last bit of a tie may get the neighbouring code.
- A block of NVFP4 may have a scale below the smallest normal E4M3 number (2**-6) here, down
  to 2**-9; torchao raises it to 2**-6.
"""

from __future__ import annotations

import logging
import warnings

import pytest
import torch
from torch import Tensor

from frtspec.runtime import numerics
from frtspec.runtime.numerics.four import unpack_pairs

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)  # kernels that it can't load on this machine
    from torchao.prototype.mx_formats import nvfp4_tensor
    from torchao.quantization import quant_primitives as torchao

    logging.disable(logging.NOTSET)

SHAPES = [(64, 256), (33, 512)]
DTYPES = [torch.float32, torch.bfloat16]
NORMAL = 2.0**-6


def weight(shape: tuple[int, int], dtype: torch.dtype) -> Tensor:
    """Rows of very different size, values of one exponent among them."""
    generator = torch.Generator().manual_seed(shape[0])
    w = torch.randn(shape, generator=generator) * torch.rand(shape[0], 1, generator=generator)
    w[1] *= 1e-3
    return w.to(dtype)


def same_bits(a: Tensor, b: Tensor) -> bool:
    return torch.equal(a.view(torch.uint8), b.view(torch.uint8))


def block_of(per: str, shape: tuple[int, int]) -> list[int]:
    return {"tensor": list(shape), "channel": [1, shape[1]], "group": [1, 128], "block": [32, 32]}[
        per
    ]


@pytest.mark.parametrize("shape", SHAPES[:1])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("per", ["tensor", "channel", "group", "block"])
def test_fp8(per: str, dtype: torch.dtype, shape: tuple[int, int]) -> None:
    w, block = weight(shape, dtype), block_of(per, shape)
    scale = torchao._choose_scale_float8(w.float(), block, torch.float8_e4m3fn)
    codes = torchao._quantize_affine_float8(w.float(), scale, torch.float8_e4m3fn)
    size = block[1] if per in ("group", "block") else None
    ours = numerics.quantize_fp8(w, per=per, size=size)  # type: ignore[arg-type]
    assert torch.equal(ours.scale.reshape(-1), scale.reshape(-1))
    assert same_bits(ours.data, codes)
    back = torchao._dequantize_affine_float8(codes, scale, torch.float32)
    assert torch.equal(numerics.dequantize(*ours), back)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("bits", "group"), [(8, None), (4, 32), (4, 64), (4, 128)])
def test_whole_numbers(
    bits: int, group: int | None, dtype: torch.dtype, shape: tuple[int, int]
) -> None:
    w, largest = weight(shape, dtype), 127 if bits == 8 else 7
    block = (1, group or shape[1])
    scale, zero = torchao.choose_qparams_affine(
        w.float(),
        torchao.MappingType.SYMMETRIC,
        block,
        torch.int8,
        -largest,
        largest,
        eps=1e-30,
        scale_dtype=torch.float32,
    )
    codes = torchao.quantize_affine(w.float(), block, scale, zero, torch.int8, -largest, largest)
    ours = numerics.quantize_int8(w) if group is None else numerics.quantize_int4(w, group)
    assert torch.equal(ours.scale.reshape(-1), scale.reshape(-1))
    found = ours.data
    if group is not None:
        found = numerics.dequantize_int4(ours.data, torch.ones(1)).to(torch.int8)
    steps = w.double() / ours.scale.double().repeat_interleave(block[1], dim=1)
    tie = (steps - steps.floor() - 0.5).abs() < 1e-5
    assert torch.equal(found[~tie], codes[~tie])
    assert (found.int() - codes.int()).abs().max() <= 1
    if dtype == torch.float32:
        assert torch.equal(found, codes)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("levels", [1, 2])
def test_nvfp4(levels: int, dtype: torch.dtype, shape: tuple[int, int]) -> None:
    w = weight(shape, dtype).float()
    tensor = None if levels == 1 else nvfp4_tensor.per_tensor_amax_to_scale(w.abs().max())
    scale, codes = nvfp4_tensor.nvfp4_quantize(w, 16, tensor)
    ours = numerics.quantize_nvfp4_one_level(w) if levels == 1 else numerics.quantize_nvfp4(w)
    if tensor is not None:
        assert ours.tensor_scale is not None and ours.tensor_scale.item() == tensor.item()
    theirs = scale.reshape(ours.scale.shape).float()
    small = ours.scale.float() < NORMAL
    assert torch.equal(ours.scale.float()[~small], theirs[~small])
    assert (theirs[small] == NORMAL).all()
    wide = small.repeat_interleave(16, dim=1)
    found, wanted = unpack_pairs(ours.data), unpack_pairs(codes.view(torch.uint8))
    assert torch.equal(found[~wide], wanted[~wide])
    assert levels == 2 or dtype == torch.float32 or small.any()
