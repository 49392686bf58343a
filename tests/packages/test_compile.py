"""Kernels compile ahead of time, on a machine with no GPU, for every architecture they are for.

The default tests take each kernel once and each architecture; ``-m slow`` takes every tuning row.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.packages import staging

triton = pytest.importorskip("triton", reason="kernel packages are written in Triton")

SHARED_KIB = {80: 163, 89: 99, 90: 227, 100: 227, 120: 99}
"""Shared memory that a program may take, KiB, by architecture."""

module = staging.submodules("frt-dense")
POINTER = {"fp8": "*fp8e4nv", "int8": "*i8", "int4": "*u8"}
FLAGS = {
    "BIAS": False, "HALVES": False, "GROUP": 64, "ZEROS": 0, "EVEN": True,
    "ASM": True, "EXACT": 0,
}  # fmt: skip


def compiled(kernel: Any, arch: int, warps: int, **arguments: Any) -> Any:
    """A kernel built for sm_``arch``; strings are types of run-time arguments, the rest is known
    when it is compiled. Whole numbers and pointers are taken as multiples of 16."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = kernel.arg_names
    known = {n: v for n, v in arguments.items() if n in names}
    missing = [n for n in names if n not in known]
    assert not missing, missing
    live = [n for n, v in known.items() if isinstance(v, str)]
    source = ASTSource(
        kernel,
        signature={n: known[n] if n in live else "constexpr" for n in names},
        constexprs={(names.index(n),): v for n, v in known.items() if n not in live},
        attrs={(names.index(n),): [["tt.divisibility", 16]] for n in live if n != "M"},
    )
    return triton.compile(source, target=GPUTarget("cuda", arch, 32), options={"num_warps": warps})


def product(row: dict, arch: int) -> Any:
    """The kernel of a tuning row, as a feed-forward block uses it."""
    fmt, gated, split = row["format"], row["op"] == "gated", row["split"] > 1
    requant = fmt == "fp8" and gated
    one = "bm" not in row
    pdl = arch >= 90
    kernel = module("_one").one_row if one else module("_few").few_rows
    x = "*bf16" if fmt != "fp8" or (one and gated) else POINTER["fp8"]
    return compiled(
        kernel, arch, row["warps"], x=x, w=POINTER[fmt], ws="*fp32",
        xs="*fp32" if fmt == "fp8" else None, bias=None,
        out=POINTER["fp8"] if requant else "*bf16", os="*fp32" if requant else None,
        part="*fp32" if split else None, count="*i32" if split else None, zero=None,
        M="i32", N="i32", K="i32", BYTES="i32", GROUPS="i32",
        **FLAGS | {
            "FORMAT": module("_launch").FORMATS[fmt], "GATED": gated, "ACT": int(gated),
            "REQUANT": requant, "HALVES": fmt == "int4" and gated, "BN": row["bn"],
            "BM": row.get("bm", 1), "BK": row["bk"], "SPLIT": row["split"],
            "STAGES": row["stages"], "LINES": row["lines"] if pdl else 0,
            "EXACT": row.get("exact", 0), "PDL": pdl,
        },
    )  # fmt: skip


def family(arch: int) -> str:
    return "sm90" if arch == 90 else "any"


def rows(arch: int, *, all_rows: bool) -> list[dict]:
    """Tuning rows of an architecture: all, or the first of each format and kernel."""
    found: dict[tuple, dict] = {}
    table = module("_tuning").table(family(arch))
    if all_rows:
        return list(table)
    for row in table:
        found.setdefault((row["format"], "bm" in row), row)
    return list(found.values())


def check(row: dict, arch: int) -> None:
    if row["format"] == "fp8" and arch < 89:
        with pytest.raises(triton.CompilationError):
            product(row, arch)
        return
    built = product(row, arch)
    assert built.metadata.shared <= SHARED_KIB[arch] * 1024, row


@pytest.mark.parametrize("arch", [80, 90, 120])
def test_products_compile(arch: int) -> None:
    for row in rows(arch, all_rows=False):
        check(row, arch)


@pytest.mark.slow
@pytest.mark.parametrize("arch", sorted(SHARED_KIB))
def test_every_tuning_row_compiles(arch: int) -> None:
    for row in rows(arch, all_rows=True):
        check(row, arch)


@pytest.mark.parametrize("arch", [90])
def test_producers_compile(arch: int) -> None:
    make = module("_producers")
    common = {"scale": "*fp32", "zero": None, "ZEROS": 0, "ASM": True, "PDL": True, "BLOCK": 1024}
    compiled(make.quantize_rows, arch, 4, x="*bf16", out="*fp8e4nv", total="i32", **common)
    compiled(
        make.activate_quantize, arch, 8, h="*bf16", out="*fp8e4nv", M="i32", N="i32", GATED=True,
        ACT=2, **common,
    )  # fmt: skip
    compiled(make.halve_rows, arch, 4, x="*bf16", out="*bf16", M="i32", K="i32", **common)


def test_few_rows_run_on_the_matrix_units() -> None:
    """Not on the ordinary ones, and FP8 codes go there as they are: no conversion in the loop."""
    row = next(r for r in rows(90, all_rows=True) if r["format"] == "fp8" and r.get("bm") == 64)
    ptx = product(row, 90).asm["ptx"]
    assert "wgmma.mma_async" in ptx and "e4m3.e4m3" in ptx
    assert "cp.async" in ptx and "griddepcontrol.wait" in ptx
