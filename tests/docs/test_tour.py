"""The tour of docs/language.md, typed as it stands, ends in an attached model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.fences import example, fences

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("structure", "impl", "scheme", "binding")

ATTACH = """
import torch
from transformers import SiglipVisionConfig, SiglipVisionModel

torch.manual_seed(0)
config = SiglipVisionConfig(
    hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4,
    image_size=32, patch_size=8,
)
model = SiglipVisionModel(config).eval()
images = [torch.randn(1, 3, 32, 32) for _ in range(2)]
before = model(pixel_values=images[0]).last_hidden_state
"""

CHECKED = """
assert plan.names("bound") == ("mlp[0]", "mlp[1]"), plan.explain()
with torch.no_grad():
    model(pixel_values=images[0])
assert all(row.clean for row in plan.ledger().values())
plan.detach()
assert torch.equal(before, model(pixel_values=images[0]).last_hidden_state)
"""


def run(folder: Path, *argv: str) -> None:
    paths = os.pathsep.join([str(folder / "generated"), str(ROOT), str(ROOT / "generated")])
    done = subprocess.run(
        [sys.executable, *argv],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_tour(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    page = fences(ROOT / "docs/language.md")
    named = {example(f).name: f for f in page if f.language == "frt"}
    bodies = [named[part].text.removeprefix("frt 1\n") for part in PARTS]
    (tmp_path / "vision.frt").write_text("frt 1\n" + "".join(bodies))
    console = next(f for f in page if f.language == "console")
    for line in console.text.splitlines():
        run(tmp_path, "-m", *line.removeprefix("$ ").split())
    snippet = next(f for f in page if f.language == "python")
    run(tmp_path, "-c", ATTACH + snippet.text + CHECKED)
