"""Tests that load the contract packages as a user's own: LOCAL_KERNELS names them all."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from frtspec.runtime.rungs import kernels
from tests.contracts import staging


@pytest.fixture
def packages(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every contract package is named by LOCAL_KERNELS; the Hub is never asked."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setenv("LOCAL_KERNELS", staging.local_kernels())
    kernels.forget()
    yield
    kernels.forget()
