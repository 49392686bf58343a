"""SmolLM2's own weights put away to the file they came from, and back, bit for bit."""

from __future__ import annotations

import ctypes
import gc
import resource
import sys
from pathlib import Path

import pytest
import torch
from flashrt_gen import llama
from safetensors.torch import load_file, save_file

from frtspec.live import smollm
from frtspec.live.data import MissingData

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        sys.platform != "linux", reason="reads what lies in memory as Linux tells it"
    ),
]

FFN = 30 * 3 * 576 * 1536
"""Parameters of the feed-forward blocks."""


def resident() -> int:
    """Bytes of this process that lie in memory, once the allocator gave back what is free."""
    gc.collect()
    ctypes.CDLL("libc.so.6").malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def held(model: torch.nn.Module) -> int:
    return sum(p.numel() * p.element_size() for p in model.parameters() if not p.is_meta)


def test_the_weights_behind_the_seats_go_to_their_file_and_come_back(tmp_path: Path) -> None:
    try:
        model = smollm.load().model
    except MissingData as missing:
        pytest.skip(str(missing))
    file = tmp_path / "model.safetensors"
    save_file({n: p.detach().clone() for n, p in model.named_parameters()}, file)
    before = dict(model.named_parameters())
    ids = torch.arange(100, 132)[None]

    def forward(sample: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return model(input_ids=sample, use_cache=False).logits

    untouched, whole = forward(ids), held(model)
    plan = llama.build(
        model,
        forward,
        observations=[ids, ids + 500],
        structures=("decoder_ffn",),
        scheme="fp8_static",
        rungs=("emulate",),
    )
    assert len(plan.bound) == 30 and plan.memory.duplicated == 4 * FFN
    treated = forward(ids)
    lying = resident()
    memory = plan.consume(file)
    assert memory.stored == {"checkpoint": 4 * FFN} and memory.freed == 4 * FFN
    assert memory.duplicated == 0 and memory.kept == {}
    assert whole - held(model) == 4 * FFN
    assert lying - resident() > 0.9 * 4 * FFN  # 318,504,960 bytes went
    assert torch.equal(forward(ids), treated) and not any(
        r.fallbacks for r in plan.ledger().values()
    )
    plan.detach()
    assert held(model) == whole
    assert torch.equal(forward(ids), untouched)
    now = dict(model.named_parameters())
    saved = load_file(file)
    for name, parameter in before.items():
        assert now[name] is parameter and torch.equal(parameter.detach(), saved[name]), name
