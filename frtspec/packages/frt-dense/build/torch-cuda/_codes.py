"""Codes of weights to numbers that the multipliers take.

Hopper converts whole numbers to float at a quarter of its arithmetic rate or less, so codes
are turned by bit patterns instead: the low bits of a float between 128 and 255 (bfloat16) or
from 2**23 up (float32) are a whole number. ``ASM`` False is the same in plain Triton, for the
interpreter, which runs no assembly.
"""

import triton
import triton.language as tl

FP8: tl.constexpr = tl.constexpr(0)
INT8: tl.constexpr = tl.constexpr(1)
INT4: tl.constexpr = tl.constexpr(2)

# Four bytes at a time. The low seven bits of a code give 128 to 255, its sign bit 128 or 256:
# the difference is the code.
_INT8_BF16: tl.constexpr = tl.constexpr("""{
.reg .b32 a, b, la, lb, ha, hb, one;
prmt.b32 a, $2, 0, 0x4140;
prmt.b32 b, $2, 0, 0x4342;
lop3.b32 la, a, 0x007f007f, 0x43004300, 0xea;
lop3.b32 lb, b, 0x007f007f, 0x43004300, 0xea;
lop3.b32 ha, a, 0x00800080, 0x43004300, 0xea;
lop3.b32 hb, b, 0x00800080, 0x43004300, 0xea;
mov.b32 one, 0xbf80bf80;
fma.rn.bf16x2 $0, ha, one, la;
fma.rn.bf16x2 $1, hb, one, lb;
}""")

# Four bytes, eight codes: the even places' four, then the odd places'. A code with its sign
# bit flipped is 0 to 15, so 128 + that, less 136, is the code.
_INT4_BF16: tl.constexpr = tl.constexpr("""{
.reg .b32 l, h, la, lb, ha, hb, one, off;
lop3.b32 l, $4, 0x0f0f0f0f, 0x08080808, 0x6a;
shr.b32 h, $4, 4;
lop3.b32 h, h, 0x0f0f0f0f, 0x08080808, 0x6a;
mov.b32 one, 0x3f803f80;
mov.b32 off, 0xc308c308;
mov.b32 la, 0x43434343;
prmt.b32 lb, l, la, 0x4342;
prmt.b32 ha, h, la, 0x4140;
prmt.b32 hb, h, la, 0x4342;
prmt.b32 la, l, la, 0x4140;
fma.rn.bf16x2 $0, la, one, off;
fma.rn.bf16x2 $1, lb, one, off;
fma.rn.bf16x2 $2, ha, one, off;
fma.rn.bf16x2 $3, hb, one, off;
}""")

_INT8_F32: tl.constexpr = tl.constexpr("""{
.reg .b32 u, m, a, b, c, d;
xor.b32 u, $4, 0x80808080;
mov.b32 m, 0x4b000000;
prmt.b32 a, u, m, 0x7440;
prmt.b32 b, u, m, 0x7441;
prmt.b32 c, u, m, 0x7442;
prmt.b32 d, u, m, 0x7443;
add.f32 $0, a, 0fCB000080;
add.f32 $1, b, 0fCB000080;
add.f32 $2, c, 0fCB000080;
add.f32 $3, d, 0fCB000080;
}""")


@triton.jit
def ask(w, rows, row_bytes, start, LINES: tl.constexpr):
    """Asks the L2 for the first lines (128 bytes) of a program's rows; nothing waits for them."""
    lines = tl.arange(0, LINES) * 128
    at = w.to(tl.pointer_type(tl.int8)) + rows.to(tl.int64)[:, None] * row_bytes
    tl.inline_asm_elementwise(
        "prefetch.global.L2 [$1]; mov.u32 $0, 0;",
        "=r,l",
        [at + start + lines[None, :]],
        dtype=tl.int32,
        is_pure=False,
        pack=1,
    )


@triton.jit
def int8_to_bf16(codes, ASM: tl.constexpr):
    """int8 -> bfloat16, exact."""
    if ASM:
        return tl.inline_asm_elementwise(
            _INT8_BF16, "=r,=r,r", [codes], dtype=tl.bfloat16, is_pure=True, pack=4
        )
    else:
        return codes.to(tl.float32).to(tl.bfloat16)


@triton.jit
def int8_to_f32(codes, ASM: tl.constexpr):
    """int8 -> float32, exact."""
    if ASM:
        return tl.inline_asm_elementwise(
            _INT8_F32, "=f,=f,=f,=f,r", [codes], dtype=tl.float32, is_pure=True, pack=4
        )
    else:
        return codes.to(tl.float32)


@triton.jit
def _nibbles(pairs):
    low = (pairs & 0xF).to(tl.int32)
    high = (pairs >> 4).to(tl.int32) & 0xF
    return ((low ^ 8) - 8).to(tl.float32), ((high ^ 8) - 8).to(tl.float32)


@triton.jit
def int4_to_bf16(pairs, ASM: tl.constexpr):
    """uint8 pairs -> (even places, odd places) in bfloat16, exact."""
    if ASM:
        return tl.inline_asm_elementwise(
            _INT4_BF16,
            "=r,=r,=r,=r,r",
            [pairs],
            dtype=(tl.bfloat16, tl.bfloat16),
            is_pure=True,
            pack=4,
        )
    else:
        low, high = _nibbles(pairs)
        return low.to(tl.bfloat16), high.to(tl.bfloat16)


@triton.jit
def to_bf16(x, ASM: tl.constexpr):
    """float32 -> bfloat16, nearest even; the interpreter's own cast cuts off."""
    if ASM:
        return x.to(tl.bfloat16)
    else:
        bits = x.to(tl.int32, bitcast=True)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & -0x10000
        return tl.where(x == x, bits.to(tl.float32, bitcast=True), x).to(tl.bfloat16)  # noqa: PLR0124


@triton.jit
def _e4m3(steps):
    """float32 within +-448 -> E4M3 by its bits: the interpreter's own cast drops carries."""
    size = tl.abs(steps)
    bits = size.to(tl.int32, bitcast=True)
    normal = ((bits + 0x7FFFF + ((bits >> 20) & 1)) >> 20) - (120 << 3)
    # Below 2**-6 codes are whole steps of 2**-9; adding 1.5 * 2**23 rounds to nearest even.
    small = (size * 512.0 + 12582912.0).to(tl.int32, bitcast=True) & 0xF
    code = tl.where(size < 0.015625, small, normal)
    code = tl.where(steps != steps, 0x7F, code)  # noqa: PLR0124
    sign = (steps.to(tl.int32, bitcast=True) >> 24) & 0x80
    return (code | sign).to(tl.uint8).to(tl.float8e4nv, bitcast=True)


@triton.jit
def steps_of(scale):
    """What turns float32 into steps of ``scale`` [scalar]: (scale, its reciprocal), both in
    range; (1, 0) of zero, which makes every step zero."""
    zero = scale == 0
    scale = tl.where(zero, 1.0, scale)
    return scale, tl.where(zero, 0.0, tl.math.div_rn(1.0, scale))


@triton.jit
def to_fp8(x, scale, inverse, ASM: tl.constexpr):
    """E4M3 codes of float32 ``x`` in steps of ``scale``, see ``steps_of``.

    Nearest even, saturated. The quotient is the exactly rounded one: a product by the
    reciprocal, put right by what it leaves over.
    """
    steps = x * inverse
    exact = tl.fma(tl.fma(-steps, scale, x), inverse, steps)
    # Far outside the format the remainder may overflow; there nothing is left to put right.
    steps = tl.where(tl.abs(steps) < 1024.0, exact, steps)
    steps = tl.where(inverse == 0.0, 0.0, steps)
    if ASM:
        return steps.to(tl.float8e4nv)
    else:
        return _e4m3(tl.clamp(steps, -448.0, 448.0, propagate_nan=tl.PropagateNan.ALL))


@triton.jit
def dot(a, b, acc, ASM: tl.constexpr):
    """acc + a @ b of bfloat16; the interpreter's own product of it is wrong."""
    if ASM:
        return tl.dot(a, b, acc)
    else:
        return tl.dot(a.to(tl.float32), b.to(tl.float32), acc, input_precision="ieee")


@triton.jit
def _sigmoid(x, ASM: tl.constexpr):
    if ASM:
        return tl.inline_asm_elementwise(
            "{.reg .f32 e; mul.f32 e, $1, 0fBFB8AA3B; ex2.approx.f32 e, e; add.f32 e, e, 0f3F800000;"
            " rcp.approx.ftz.f32 $0, e;}",
            "=f,f",
            [x],
            dtype=tl.float32,
            is_pure=True,
            pack=1,
        )
    else:
        return 1.0 / (1.0 + tl.exp(-x))


@triton.jit
def activate(g, ACT: tl.constexpr, ASM: tl.constexpr):
    """SiLU (1) or tanh-GELU (2) of float32."""
    if ACT == 2:
        # 0.5 (1 + tanh t) is the sigmoid of 2 t.
        return g * _sigmoid(1.5957691216057308 * (g + 0.044715 * g * g * g), ASM)
    else:
        return g * _sigmoid(g, ASM)
