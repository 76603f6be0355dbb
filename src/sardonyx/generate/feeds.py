"""What a run of a decoder is fed besides caches: tokens, mask, positions, lengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array, DataType
from sardonyx.errors import InvalidArgument
from sardonyx.generate.cache import GrowingCache, SharedCache
from sardonyx.generate.signature import Signature
from sardonyx.generate.state import State
from sardonyx.session.values import NodeArg

__all__ = ["additive_mask", "make_feeds", "padded"]

_LOWEST = -1e9
"""What is added to the score of a key that a query does not see; an infinity would make rows of padding NaN."""


def make_feeds(signature: Signature, state: State, tokens: Array, *, uses_cache: bool) -> dict[str, Array]:
    """Return name of an input -> array, for a run of the next tokens of each row.

    Args:
        signature: the decoder's.
        state: what the rows have read.
        tokens: int64 (rows, T).
        uses_cache: whether the past is fed; without it, rows are read from their beginning and padded behind.

    Raises:
        InvalidArgument: an input has a type or a rank that is not known for its purpose.
    """
    count = tokens.shape[1]
    lengths = np.array([len(row) for row in state.ids], np.int64) if uses_cache else np.zeros(len(tokens), np.int64)
    shared = uses_cache and isinstance(state.cache, SharedCache)
    past = state.cache.length if isinstance(state.cache, GrowingCache) else int(lengths.max(initial=0))
    padding = np.zeros(len(tokens), np.int64) if shared or not uses_cache else state.padding
    positions = (lengths if shared else past - padding)[:, None] + np.arange(count)
    feeds: dict[str, Array] = {}
    for role, value in signature.roles.items():
        if role == "ids":
            feeds[value.name] = _typed(tokens, value)
        elif role == "mask":
            feeds[value.name] = (
                _mask(value, state, past, padding, count) if not shared else _counting_mask(value, state, lengths, count)
            )
        elif role == "positions":
            feeds[value.name] = _typed(np.maximum(positions if len(value.shape) != 1 else positions[0], 0), value)
        elif role == "cache_positions":
            feeds[value.name] = _typed(np.arange(past, past + count), value)
        elif role == "lengths":
            feeds[value.name] = _typed((lengths + count - 1).reshape([-1, 1][: len(value.shape)] or [-1]), value)
        elif role in ("longest", "past_length"):
            feeds[value.name] = _typed(np.full([1] * len(value.shape), past + (count if role == "longest" else 0)), value)
        elif role == "cache_branch":
            feeds[value.name] = np.full([1] * len(value.shape), uses_cache and state.is_used, np.bool_)
        elif role == "token_types":
            feeds[value.name] = _typed(np.zeros_like(tokens), value)
    return feeds


def _typed(array: Array, value: NodeArg) -> Array:
    dtype = DataType.parse(value.type.removeprefix("tensor(").removesuffix(")")).numpy
    return np.ascontiguousarray(array, dtype)


def _counting_mask(value: NodeArg, state: State, lengths: Array, count: int) -> Array:
    """Return a mask whose rows count their tokens from the front, as wide as the cache in steps of one token.

    A width that stays the same from step to step keeps the shapes of the run; the first run, and runs of several tokens, are as
    wide as the longest row, by which operators know that they are.
    """
    cache = state.cache
    assert isinstance(cache, SharedCache)
    longest = int(lengths.max(initial=0)) + count
    width = cache.capacity if count == 1 and lengths.max(initial=0) > 0 else longest
    return _typed(np.arange(width) < (lengths + count)[:, None], value)


def _mask(value: NodeArg, state: State, past: int, padding: Array, count: int) -> Array:
    columns = np.arange(past + count)
    seen = columns >= padding[:, None]
    if len(value.shape) == 4:
        own = np.arange(past, past + count)
        allowed = (seen[:, None, :] & (columns <= own[:, None])) | (columns == own[:, None])
        if value.type == "tensor(bool)":
            return np.ascontiguousarray(allowed[:, None])
        return _typed(additive_mask(allowed[:, None]), value)
    if len(value.shape) not in (0, 2):
        raise InvalidArgument(
            f"the mask {value.name!r} has the shape {value.shape}; known are (batch, total) and (batch, 1, sequence, total)"
        )
    return _typed(seen, value)


def additive_mask(allowed: Array) -> Array:
    """Return 0 where a key is seen and a large negative number elsewhere, float32 of the same shape."""
    return np.where(allowed, np.float32(0), np.float32(_LOWEST))


def padded(rows: Sequence[Sequence[int]], fill: int, *, left: bool) -> Array:
    """Return rows of tokens as one array, int64 (rows, longest), with `fill` before or behind the shorter ones."""
    longest = max(map(len, rows))
    made = np.full((len(rows), longest), fill, np.int64)
    for place, row in enumerate(rows):
        made[place, longest - len(row) if left else 0 : longest if left else len(row)] = row
    return made
