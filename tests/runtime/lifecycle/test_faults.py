"""Every step of attach fails in turn; afterwards the host is what it was, and so are the files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open

from frtspec import runtime as rt
from tests.runtime import hosts_small as small
from tests.runtime.lifecycle import injecting
from tests.runtime.lifecycle.injecting import Planted
from tests.runtime.lifecycle.support import bits, picture, same_bits

BATCHES = small.token_batches(2, length=6)
HELD = small.token_batches(1, length=6, seed=9)
SAMPLED = 16


class Work:
    """Attach with a calibration kept in a cache, and the receipt written beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.model = folder, small.tiny_decoder(num_hidden_layers=1)
        self.before, self.bits = picture(self.model), bits(self.model)
        with torch.no_grad():
            self.logits = self.model(HELD[0])

    def __call__(self) -> rt.Plan:
        for file in self.folder.rglob("*"):
            if file.is_file():
                file.unlink()
        plan = rt.attach(
            small.BINDING,
            self.model,
            self.model,
            scheme="fp8_static",
            rungs=("torch",),
            observations=BATCHES,
            held_out=HELD,
            calibration="auto",
            rounds=1,
            iters=1,
        )
        try:
            plan.save_receipt(self.folder / "receipt.json")
        except BaseException:
            plan.detach()
            raise
        return plan

    def check(
        self, fault: Planted, plan: rt.Plan | None, error: BaseException | None, met: bool
    ) -> None:
        """Raises AssertionError, with the fault, where something was left behind."""
        where = str(fault)
        if met and fault.fault == "interrupt":
            assert isinstance(error, KeyboardInterrupt), where
        if plan is not None:
            with torch.no_grad():
                treated = self.model(HELD[0])
            assert treated.isfinite().all(), f"{where}: the attached host gives NaN"
            off = (treated - self.logits).norm() / self.logits.norm()
            assert off < 0.2, f"{where}: the attached host is {off:.2g} off"
            plan.detach()
        assert picture(self.model) == self.before, where
        assert same_bits(self.model, self.bits), where
        for file in self.folder.rglob("*"):
            assert file.is_dir() or _whole(file), f"{where}: {file.name} is half-written"


def _whole(file: Path) -> bool:
    if file.name.endswith(".lock"):
        return True
    try:
        if file.suffix == ".safetensors":
            with safe_open(file, "pt") as opened:
                keys = list(opened.keys())
                return [opened.get_tensor(key).numel() for key in keys] != None
        return file.suffix == ".json" and json.loads(file.read_text()) is not None
    except Exception:  # noqa: BLE001 - whatever a half-written file leads to
        return False


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Work:
    monkeypatch.setenv("FRTSPEC_CACHE_DIR", str(tmp_path))
    made = Work(tmp_path)
    made().detach()
    return made


def inject(work: Work, faults: list[Planted]) -> int:
    """Plants each fault in a run of its own; returns how many were reached."""
    count = 0
    for fault in faults:
        plan, error, reached = injecting.run_with(fault, work)
        count += reached
        work.check(fault, plan, error, reached)
    return count


def every_fault(work: Work) -> list[Planted]:
    def once() -> Any:
        work().detach()

    return injecting.planted(injecting.ends(injecting.points(once)))


def test_a_fault_at_any_sampled_step_leaves_nothing_behind(
    work: Work, capsys: pytest.CaptureFixture[str]
) -> None:
    every = every_fault(work)
    chosen = injecting.sample(every, SAMPLED, seed=5)
    reached = inject(work, chosen)
    with capsys.disabled():
        print(f"\n{reached} faults injected, of {len(every)} points and faults listed")
    assert len(every) > 1000 and reached >= 0.9 * len(chosen)


@pytest.mark.slow
@pytest.mark.parametrize("part", range(8))
def test_a_fault_at_every_step_leaves_nothing_behind(
    work: Work, part: int, capsys: pytest.CaptureFixture[str]
) -> None:
    every = every_fault(work)
    reached = inject(work, every[part::8])
    with capsys.disabled():
        print(f"\n{reached} faults injected, of {len(every)} points and faults listed")
    assert reached >= 0.9 * len(every[part::8])


def test_the_steps_that_matter_are_among_the_points(work: Work) -> None:
    places = {fault.point.place for fault in every_fault(work)}
    for step in (
        "Recorder.before",
        "observe",
        "bind_seat",
        "probe",
        "kernel_parity",
        "boundary",
        "Entry.put",
        "Attachment._activate",
        "hold",
        "seal",
        "replacing",
        "locked",
        "-> fsync",
        "-> replace",
    ):
        assert any(step in place for place in places), step
