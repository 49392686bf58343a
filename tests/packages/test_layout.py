"""What a shipped package has to be so that `kernels` loads it, and from a wheel too."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench.kernels_stamp import stamp
from frtspec.runtime.rungs import kernels
from tests.packages import staging

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=staging.names())
def variant(request: pytest.FixtureRequest) -> Path:
    return staging.PACKAGES / request.param / staging.VARIANT


def test_the_loader_looks_where_the_packages_are() -> None:
    assert kernels.SHIPPED == staging.PACKAGES
    assert "frt-dense" in staging.names()


def test_metadata(variant: Path) -> None:
    found = json.loads((variant / "metadata.json").read_text())
    assert found["name"] == variant.parents[1].name
    assert re.fullmatch(r"[a-z][-a-z0-9]*[a-z0-9]", found["name"])
    assert found["backend"]["type"] == "cuda"
    assert found["license"] == "Apache-2.0"
    assert found["python-depends"] == []  # "triton" is not one that `kernels` lets a package name


def test_the_id_is_of_the_content(variant: Path) -> None:
    """Two contents under one id would share submodules and operators in a process."""
    found = json.loads((variant / "metadata.json").read_text())["id"]
    assert found == stamp(variant), "run: python bench/kernels_stamp.py"


def test_imports_are_relative_and_few(variant: Path) -> None:
    """A package is imported under its id, so its own modules are found relatively only."""
    allowed = {"torch", "triton", "functools", "json", "pathlib"}
    for path in variant.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= allowed, path
            if isinstance(node, ast.ImportFrom) and node.level == 0:
                assert str(node.module).split(".")[0] in allowed, path


def test_loads_without_a_gpu_and_traces(tmp_path: Path) -> None:
    """Import, operators with fakes, an entry traced on fake tensors: in a process of its own."""
    pytest.importorskip("triton", reason="kernel packages are written in Triton")
    folder = staging.on_cpu("frt-dense", tmp_path)
    code = f"""
import torch, os
os.environ["LOCAL_KERNELS"] = "frt-dense={folder}"
from torch._subclasses import FakeTensorMode
from frtspec.runtime.rungs import kernels
kit = kernels.load("local", "frt-dense", 1, ("fp8_swiglu", "w8a16_geglu")).module
with FakeTensorMode():
    x = torch.empty(3, 64, dtype=torch.bfloat16)
    up, down = torch.empty(256, 64, dtype=torch.int8), torch.empty(64, 128, dtype=torch.int8)
    s = torch.empty(256, 1)
    y = kit.w8a16_swiglu(x, up, s, down, s)
    assert (y.shape, y.dtype) == ((3, 64), torch.bfloat16), y
    assert kit.w8a16_linear(x, up, s).shape == (3, 256)
ops = [n for n in dir(getattr(torch.ops, kit.__name__)) if n.endswith(("ffn", "linear"))]
for name in ops:
    schema = getattr(getattr(torch.ops, kit.__name__), name).default._schema
    assert not any(a.alias_info and a.alias_info.is_write for a in schema.arguments), schema
assert len(ops) == 6, ops
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
