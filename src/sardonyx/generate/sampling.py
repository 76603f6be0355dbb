"""The choice of a token: the best one, or one drawn by its probability."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import RuntimeException
from sardonyx.generate.processors import change_scores, limit_scores, probabilities
from sardonyx.generate.settings import Settings

__all__ = ["Sampler", "draw"]


class Sampler:
    """Chooses the tokens of one row; rows with equal seeds and places draw the same numbers, alone or in a batch."""

    def __init__(self, settings: Settings, most: int, place: int = 0) -> None:
        """Begin a row.

        Args:
            settings: how to choose.
            most: how many tokens there will be at most.
            place: the row's number, which is part of its seed.
        """
        self._settings, self._most = settings, most
        self._random = np.random.default_rng(None if settings.seed is None else [settings.seed, place])

    def choose(self, ids: Sequence[int], made: int, scores: Array) -> int:
        """Return the next token.

        Args:
            ids: the row's tokens so far, prompt included.
            made: how many of them are new.
            scores: logits, float32 (vocabulary,).

        Raises:
            RuntimeException: no token is left, or the model gives NaN.
        """
        changed = change_scores(self._settings, ids, made, self._most, scores)
        if not self._settings.draws:
            return _best(changed)
        return draw(limit_scores(self._settings, changed), self._random)

    def chances(self, ids: Sequence[int], made: int, scores: Array) -> Array:
        """Return the probability of each token, float64 (vocabulary,): 1 for the best one where none is drawn; as `choose`."""
        changed = change_scores(self._settings, ids, made, self._most, scores)
        best = _best(changed)
        if self._settings.draws:
            return probabilities(limit_scores(self._settings, changed))
        made_sure = np.zeros(changed.size)
        made_sure[best] = 1
        return made_sure

    @property
    def random(self) -> np.random.Generator:
        """The row's random numbers."""
        return self._random


def draw(scores: Array, random: np.random.Generator) -> int:
    """Return a token drawn by the softmax of scores, float32 (vocabulary,), with one random number.

    Raises:
        RuntimeException: every score is -inf, or one is NaN.
    """
    if not np.isfinite(scores.max()):
        raise _no_token(scores)
    sums = np.cumsum(probabilities(scores))
    return int(min(np.searchsorted(sums, random.random() * sums[-1], side="right"), np.flatnonzero(scores > -np.inf)[-1]))


def _best(scores: Array) -> int:
    """Return the token of the highest score.

    Raises:
        RuntimeException: every score is -inf, or one is NaN.
    """
    token = int(scores.argmax())
    if not scores[token] > -np.inf:
        raise _no_token(scores)
    return token


def _no_token(scores: Array) -> RuntimeException:
    if np.isnan(scores).any():
        return RuntimeException(
            "a score is NaN, so no token can be chosen: the model gives it as a logit, or a processor returns it; `sardonyx diff` "
            "finds the first node that does"
        )
    return RuntimeException("every token is excluded: the settings and processors leave none to choose")
