"""Every page of the checks: its example reports its code and nothing else."""

from __future__ import annotations

import pytest

from frtspec.diag.catalog.sema import CODES
from frtspec.diag.codes_types import Code
from tests.sema.helpers import check

ALONE = [c for c in CODES if c.id not in ("FRT0203", "FRT0610")]


@pytest.mark.parametrize("code", CODES, ids=lambda c: c.id)
def test_the_example_fails(code: Code) -> None:
    assert isinstance(code.example, str)
    assert code.id in [d.code for d in check(code.example)]


@pytest.mark.parametrize("code", ALONE, ids=lambda c: c.id)
def test_the_example_reports_nothing_else(code: Code) -> None:
    assert isinstance(code.example, str)
    assert {d.code for d in check(code.example)} == {code.id}


@pytest.mark.parametrize("code", [c for c in CODES if c.fixed], ids=lambda c: c.id)
def test_the_mended_example_is_right(code: Code) -> None:
    assert isinstance(code.fixed, str)
    assert check(code.fixed) == ()
