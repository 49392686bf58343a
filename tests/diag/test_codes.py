"""The code catalog is whole, and every page's example does what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from frtspec.cli.common import FAULT, FINDINGS, OK, USAGE
from frtspec.cli.explain import page, run_example
from frtspec.diag.codes import codes
from frtspec.diag.codes_types import Code, phase_of

PACKAGE = Path(__file__).parents[2] / "frtspec"
CODE = re.compile(r"\bFRT\d{4}\b")


def used() -> set[str]:
    """Every code that the compiler's sources name outside the catalog and docstrings."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        if "catalog" not in path.parts:
            found |= set(re.findall(r'"(FRT\d{4})"', path.read_text("utf-8")))
    return found


def test_every_code_raised_has_a_page() -> None:
    assert used() - codes().keys() == set()


def test_every_page_is_raised_somewhere() -> None:
    assert codes().keys() - used() == set()


@pytest.mark.parametrize("code", codes().values(), ids=codes().keys())
def test_the_example_reports_its_code(code: Code) -> None:
    exit_code, output = run_example(code.project())
    assert code.id in CODE.findall(output), output
    assert exit_code != FAULT
    if "error[" in output:
        assert exit_code in (FINDINGS, USAGE)


@pytest.mark.parametrize(
    "code", [c for c in codes().values() if c.fixed is not None], ids=lambda c: c.id
)
def test_the_mended_example_does_not(code: Code) -> None:
    mended = code.mended()
    assert mended is not None
    exit_code, output = run_example(mended)
    assert code.id not in output, output
    assert exit_code == OK, output


@pytest.mark.parametrize("code", codes().values(), ids=codes().keys())
def test_the_page_reads_well(code: Code) -> None:
    assert phase_of(code.id[3:]) == code.phase
    assert code.title[0] == code.title[0].lower() or not code.title[1].islower()
    assert not code.title.endswith(".")
    assert code.summary.endswith(".") and code.fix.endswith((".", ")", "`"))


def test_a_page_shows_the_message() -> None:
    text = page(codes()["FRT0852"])
    assert text.startswith("FRT0852: unknown key in [tool.frtspec]\n")
    assert "pyproject.toml:2:1: error[FRT0852]: unknown key `pakage`" in text
    assert "help: did you mean `package`?" in text
