"""Real text, cut into token sequences: 300 short news items that the package gensim ships."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from frtspec.live.data import packaged_file

CALIBRATION = range(60)
"""Articles to calibrate on."""

HELD_OUT = range(150, 210)
"""Articles to judge on; none of them calibrates."""

_SHORTEST = 300


def articles() -> list[str]:
    """The news items of more than 300 characters, in the file's order.

    Raises MissingData when gensim is not installed.
    """
    path = packaged_file("gensim", "gensim", "test", "test_data", "lee_background.cor")
    lines = path.read_text(encoding="utf-8").split("\n")
    return [line.strip() for line in lines if len(line) > _SHORTEST]


def sequences(tokenizer: Any, which: range, *, count: int, length: int) -> Tensor:
    """``count`` sequences of ``length`` tokens of the articles ``which``: int64 [count, length].

    The articles are joined by empty lines and cut without overlap; no token is added at
    the front. Raises ValueError when the articles hold fewer tokens.
    """
    found = articles()
    text = "\n\n".join(found[i] for i in which)
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    if len(ids) < count * length:
        raise ValueError(
            f"articles {which.start} to {which.stop - 1} hold {len(ids)} tokens,"
            f" {count} x {length} were asked for"
        )
    return torch.tensor(ids[: count * length]).view(count, length)
