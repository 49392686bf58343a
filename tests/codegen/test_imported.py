"""``status imported`` reaches the runtime, which refuses what nobody verified."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from codegen_kit import ROOT, importable, program_of, written

from frtspec.runtime import Refusal
from frtspec.runtime.eligibility import eligible
from frtspec.runtime.hosts.host import check_host

REASON = 'status imported "read in a paper"'


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The golden host package with every declaration imported."""
    folder = tmp_path_factory.mktemp("imported")
    text = (ROOT / "tests" / "codegen" / "golden" / "host" / "spec.frt").read_text()
    for head in ("impl plain for norm version 1 {", "scheme plain {"):
        text = text.replace(head, f"{head}\n  {REASON}")
    for doc in ('"""A norm with an optional bias."""', 'and a norm behind."""'):
        text = text.replace(doc, f"{doc}\n  {REASON}")
    written(program_of(text), folder, package="made_imported")
    with importable(folder, "made_imported"):
        yield importlib.import_module("made_imported.towers")


def test_every_kind_carries_its_reason(imported: Any) -> None:
    scheme = imported.HOST.schemes["plain"]
    impl = scheme.routes[0].impl
    structure = importlib.import_module("made_imported.structures.norm_v1").SPEC
    carried = {imported.HOST.imported, scheme.imported, impl.SPEC.imported, structure.imported}
    assert carried == {"read in a paper"}


def test_an_imported_binding_is_refused(imported: Any) -> None:
    with pytest.raises(Refusal, match="binding towers was imported and not verified: read in a"):
        check_host(imported.HOST, torch.nn.Linear(2, 2))


def test_an_imported_scheme_structure_or_impl_is_refused(imported: Any) -> None:
    config = SimpleNamespace(width=8, depth=1, kinds=["a"], norms=False, norm_bias=False, eps=None)
    (seat,) = imported.seats(SimpleNamespace(config=config))
    scheme = imported.HOST.schemes["plain"]
    impl = scheme.routes[0].impl
    with pytest.raises(Refusal, match=r"scheme plain was imported .*read in a paper"):
        eligible.check_verified(seat, scheme, impl)
    verified = replace(scheme, imported=None)
    with pytest.raises(Refusal, match=r"structure norm v1 was imported .*read in a paper"):
        eligible.check_verified(seat, verified, impl)
    seat = replace(seat, structure=replace(seat.structure, imported=None))
    with pytest.raises(Refusal, match=r"impl plain was imported .*read in a paper"):
        eligible.check_verified(seat, verified, impl)


def test_what_was_written_for_us_carries_none() -> None:
    from flashrt_gen import qwen3

    assert qwen3.HOST.imported is None
    assert all(scheme.imported is None for scheme in qwen3.HOST.schemes.values())
