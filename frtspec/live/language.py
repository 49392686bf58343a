"""A causal language model as a host: its samples, and how far a treated one is off."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as nnf

from frtspec.runtime.gating import metrics


@dataclass(frozen=True)
class Continuation:
    """A sequence whose first tokens the host has already seen.

    ids     the rest of the tokens, int64 [length]
    cache   the host's cache of the tokens before them
    """

    ids: Tensor
    cache: Any


@dataclass(frozen=True)
class Host:
    """A causal language model of transformers and its calls."""

    model: Any

    def forward(self, sample: Tensor | Continuation) -> Any:
        """The model's output for one sample: int64 [length], or a Continuation."""
        if isinstance(sample, Continuation):
            # The model appends to the cache that it is given.
            cache = {self._cache: copy.deepcopy(sample.cache)}
            return self.model(input_ids=sample.ids[None], use_cache=True, **cache)
        return self.model(input_ids=sample[None], use_cache=False)

    @torch.no_grad()
    def logits(self, sequences: Iterable[Tensor]) -> Iterator[Tensor]:
        """float32 [length, vocabulary] of one sequence after the other."""
        for ids in sequences:
            yield self.forward(ids).logits[0].float()

    @torch.no_grad()
    def continuations(self, sequences: Iterable[Tensor], first: int = 4) -> list[Continuation]:
        """The sequences without their ``first`` tokens, which the host runs here and now."""
        found = []
        for ids in sequences:
            output = self.model(input_ids=ids[None, :first], use_cache=True)
            found.append(Continuation(ids[first:], getattr(output, self._cache)))
        return found

    @torch.no_grad()
    def generate(self, prompt: Tensor, tokens: int) -> Tensor:
        """``tokens`` greedy tokens after ``prompt``, both int64 [length]."""
        output: Tensor = self.model.generate(
            prompt[None],
            attention_mask=torch.ones_like(prompt[None]),
            do_sample=False,
            min_new_tokens=tokens,
            max_new_tokens=tokens,
        )
        return output[0, prompt.numel() :]

    @property
    def _cache(self) -> str:
        """transformers 5.24 renamed ``past_key_values``."""
        parameters = inspect.signature(self.model.forward).parameters
        return "cache" if "cache" in parameters else "past_key_values"


@dataclass(frozen=True)
class Figures:
    """How far treated logits are from the reference, over every position.

    cosine       mean cosine of a position's logits
    agreement    share of positions with the same most likely token
    perplexity   of the treated model on the text
    reference    perplexity of the untreated model on the text
    """

    cosine: float
    agreement: float
    perplexity: float
    reference: float

    @property
    def ratio(self) -> float:
        return self.perplexity / self.reference


def figures(
    reference: Iterable[Tensor], treated: Iterable[Tensor], sequences: Iterable[Tensor]
) -> Figures:
    """Compares logits [length, vocabulary], one pair for each of the sequences [length].

    Raises ValueError when the logits can't be compared: a NaN, an Inf, another shape.
    """
    distance = metrics.comparison("distribution")
    losses = [0.0, 0.0]
    predicted = 0
    for ref, out, ids in zip(reference, treated, sequences, strict=True):
        distance.add({"logits": ref}, {"logits": out})
        losses[0] += _loss(ref, ids)
        losses[1] += _loss(out, ids)
        predicted += ids.numel() - 1
    scores = distance.scores()
    if scores.broken:
        raise ValueError(scores.broken)
    return Figures(
        cosine=scores.metrics["mean_position_cosine"],
        agreement=scores.metrics["top1_agreement"],
        perplexity=math.exp(losses[1] / predicted),
        reference=math.exp(losses[0] / predicted),
    )


def _loss(logits: Tensor, ids: Tensor) -> float:
    """The sum of the negative log likelihoods of every token but the first."""
    return nnf.cross_entropy(logits[:-1].float(), ids[1:], reduction="sum").item()
