"""Changes of scores before a token is chosen, in the order and with the meaning that `transformers` gives them.

logits ─► repetition, n-grams, minimum, forced, suppressed ─► functions of the user's ─► temperature, top-k, top-p, min-p ─► draw
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.generate.settings import Settings

__all__ = ["change_scores", "limit_scores", "probabilities"]

_NEVER = np.float32(-np.inf)


def change_scores(settings: Settings, ids: Sequence[int], made: int, most: int, scores: Array) -> Array:
    """Return the scores of the next token, as the settings change them.

    Args:
        settings: what to change.
        ids: the row's tokens so far, prompt included.
        made: how many of them are new.
        most: how many new ones there will be at most.
        scores: float32 (vocabulary,); not written to.

    Raises:
        InvalidArgument: a function of the user's returns something else than scores of this shape.
    """
    if not settings.changes_scores:
        return scores
    scores = scores.copy()
    if settings.repetition_penalty != 1:
        seen = np.unique(np.asarray(ids, np.int64))
        found, penalty = scores[seen], np.float32(settings.repetition_penalty)
        scores[seen] = np.where(found < 0, found * penalty, found / penalty)
    if settings.no_repeat_ngram_size:
        scores[_repeating(ids, settings.no_repeat_ngram_size)] = _NEVER
    if made < settings.min_new_tokens:
        scores[_inside(settings.eos_token_id, scores)] = _NEVER
    if made == 0 and settings.forced_bos_token_id is not None:
        scores = _only((settings.forced_bos_token_id,), scores)
    if made == most - 1 and settings.forced_eos_token_id:
        scores = _only(settings.forced_eos_token_id, scores)
    scores[_inside(settings.suppress_tokens, scores)] = _NEVER
    if made == 0:
        scores[_inside(settings.begin_suppress_tokens, scores)] = _NEVER
    for function in settings.processors:
        changed = np.asarray(function(ids, scores), np.float32)
        if changed.shape != scores.shape:
            raise InvalidArgument(f"processor {function!r} returned the shape {changed.shape} for scores of shape {scores.shape}")
        scores = changed
    return scores


def limit_scores(settings: Settings, scores: Array, least: int = 1) -> Array:
    """Return scores divided by the temperature, with -inf for tokens that are not drawn among.

    Args:
        settings: the temperature and the limits.
        scores: float32 (vocabulary,); not written to.
        least: how many tokens stay in any case.
    """
    scores = _divided(scores, settings.temperature)
    if settings.top_k:
        count = min(max(settings.top_k, least), scores.size)
        scores = np.where(scores < np.partition(scores, scores.size - count)[scores.size - count], _NEVER, scores)
    if settings.top_p < 1:
        order = np.argsort(scores, kind="stable")
        below = np.cumsum(probabilities(scores[order])) <= 1 - settings.top_p
        below[scores.size - least :] = False
        scores[order[below]] = _NEVER
    if settings.min_p > 0:
        chances = probabilities(scores)
        removed = chances < settings.min_p * chances.max()
        removed[np.argpartition(scores, scores.size - least)[scores.size - least :]] = False
        scores[removed] = _NEVER
    return scores


def _divided(scores: Array, temperature: float) -> Array:
    """Return scores / temperature, less their greatest one where a quotient would be no float32; the draw is the same."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        divided: Array = scores / np.float32(temperature)
        greatest = scores.max()
        if np.isfinite(divided.max()) or not np.isfinite(greatest):
            return divided
        return np.asarray((scores.astype(np.float64) - greatest) / temperature, np.float32)


def probabilities(scores: Array) -> Array:
    """Return the softmax of scores along the last axis, float64."""
    wide = scores.astype(np.float64)
    raised = np.exp(wide - wide.max(axis=-1, keepdims=True))
    result: Array = raised / raised.sum(axis=-1, keepdims=True)
    return result


def _repeating(ids: Sequence[int], size: int) -> list[int]:
    """Return the tokens that would end a sequence of `size` tokens which the row has already."""
    if len(ids) + 1 < size:
        return []
    last = tuple(ids[len(ids) - size + 1 :])
    return [ids[start + size - 1] for start in range(len(ids) - size + 1) if tuple(ids[start : start + size - 1]) == last]


def _only(tokens: Sequence[int], scores: Array) -> Array:
    made = np.full_like(scores, _NEVER)
    made[_inside(tokens, scores)] = 0
    return made


def _inside(tokens: Sequence[int], scores: Array) -> list[int]:
    return [token for token in tokens if 0 <= token < scores.size]
