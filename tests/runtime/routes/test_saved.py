"""Routed seats under a calibration from a file: the same seats, and the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from tests.hosts.diffusion import COSMOS3, Diffusion
from tests.hosts.tiny import QWEN3, Family
from tests.runtime.routes.support import attached, runner


@pytest.mark.parametrize("family", [QWEN3, COSMOS3], ids=lambda family: family.name)
def test_there_and_back(family: Family | Diffusion, tmp_path: Path) -> None:
    model, samples = family.model(), family.samples(2)
    plan = attached(family, model, samples)
    assert plan.calibration is not None
    plan.calibration.save(tmp_path / "saved")
    want = runner(model)(samples[0])
    again = family.model()
    other = attached(family, again, samples, calibration=tmp_path / "saved")
    assert other.calibration is not None and other.calibration.origin == "file"
    assert other.calibration.digest is not None
    assert other.bound == plan.bound and other.bound, other.explain()
    assert torch.equal(runner(again)(samples[0]), want)
    for name, row in other.ledger().items():
        assert (row.calls, row.reasons) == (1, {}), name
    other.detach()
    plan.detach()
