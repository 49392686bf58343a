"""The cache of converted weights: written once, read back, made again when damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from frtspec.live import smollm
from frtspec.live.data import MissingData

transformers = pytest.importorskip("transformers")
pytest.importorskip("gguf")


class Converter:
    """Stands in for the GGUF conversion: a tiny model, and a count of how often it ran."""

    def __init__(self) -> None:
        self.runs = 0

    def __call__(self, weights: Path, folder: Path, say: Callable[[str], None]) -> None:
        self.runs += 1
        torch.manual_seed(0)
        config = transformers.LlamaConfig(
            vocab_size=32,
            hidden_size=16,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=1,
        )
        transformers.LlamaForCausalLM(config).to(torch.bfloat16).save_pretrained(folder)
        words = {"a": 0, "b": 1, "?": 2}
        tokenizer = tokenizer_of(words)
        tokenizer.save_pretrained(folder)


def tokenizer_of(words: dict[str, int]) -> object:
    from tokenizers import Tokenizer, models, pre_tokenizers

    plain = Tokenizer(models.WordLevel(words, unk_token="?"))
    plain.pre_tokenizer = pre_tokenizers.Whitespace()
    return transformers.PreTrainedTokenizerFast(tokenizer_object=plain)


@pytest.fixture
def converter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Converter:
    weights = tmp_path / "tiny.gguf"
    weights.write_bytes(b"weights")
    standin = Converter()
    monkeypatch.setattr(smollm, "find_weights", lambda: weights)
    monkeypatch.setattr(smollm, "_write", standin)
    monkeypatch.setenv("FRTSPEC_CACHE", str(tmp_path / "cache"))
    return standin


def test_converts_once_and_loads_the_same_values_again(converter: Converter) -> None:
    first, second = smollm.load(), smollm.load()
    assert (first.converted_now, second.converted_now, converter.runs) == (True, False, 1)
    assert first.cache == second.cache
    theirs, ours = first.model.state_dict(), second.model.state_dict()
    assert all(torch.equal(theirs[name], ours[name]) for name in theirs)
    assert {tensor.dtype for tensor in ours.values()} == {torch.float32}
    assert not second.model.training
    assert second.tokenizer("b a")["input_ids"] == [1, 0]


def test_leaves_no_work_folder_behind(converter: Converter) -> None:
    loaded = smollm.load()
    assert list(loaded.cache.parent.iterdir()) == [loaded.cache]


def test_converts_again_when_the_cache_is_damaged(converter: Converter) -> None:
    file = smollm.load().cache / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    again = smollm.load()
    assert (again.converted_now, converter.runs) == (True, 2)


def test_other_weights_get_another_cache(converter: Converter) -> None:
    first = smollm.load()
    first.weights.write_bytes(b"other weights")
    second = smollm.load()
    assert first.cache != second.cache
    assert second.converted_now


def test_a_cache_that_cannot_be_written_is_explained(
    converter: Converter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("FRTSPEC_CACHE", str(tmp_path / "file"))
    with pytest.raises(MissingData, match="can't be written to") as missed:
        smollm.load()
    assert "FRTSPEC_CACHE" in missed.value.fix
