"""Counts of n-grams, for whole batches: each level of the pool's prefix tree is one sorted table.

Tokens become numbers. An n-gram is known by the number of its prefix of n - 1 tokens and its last token; the pairs of level n,
sorted, are a table, and a pair's place in it is the n-gram's own number. Windows of the input climb from level to level.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.label_tables import Table, looked_up, table_of

__all__ = ["Pool", "count_ngrams", "count_numbers", "pool_of"]

_MOST_NUMBERED = 1 << 20
"""How many pairs a table may have that is looked up without a search."""


@dataclasses.dataclass(frozen=True, slots=True)
class Pool:
    """The n-grams to look for."""

    tokens: Table
    """The number of each token that occurs in any n-gram."""
    token_count: int
    """How many numbers there are."""
    pairs: tuple[Array, ...]
    """For each level from 2 on, the pairs prefix * token_count + token, ascending."""
    numbers: tuple[Array | None, ...]
    """For each level from 2 on, the number of each pair that there may be, -1 for those that are none; None where that is long."""
    grams: tuple[Array, ...]
    """For each level from 1 on, the position in the pool of each number's n-gram, -1 if it is a prefix only."""
    gram_count: int
    """How many n-grams the pool has."""


def pool_of(flat: Array, starts: Sequence[int]) -> Pool:
    """Read a pool: the 1-grams, then the 2-grams, ... in a row, those of length n beginning at starts[n - 1]."""
    ends = [*starts[1:], len(flat)]
    levels: list[Array] = []
    for length, (start, end) in enumerate(zip(starts, ends, strict=True), 1):
        if not 0 <= start <= end <= len(flat) or (end - start) % length:
            raise InvalidArgument(f"ngram_counts={list(starts)} for a pool of {len(flat)} tokens: level {length} is not whole")
        levels.append(flat[start:end].reshape(-1, length))
    if flat.dtype.kind == "O":
        unique = list(dict.fromkeys(flat.tolist()))
        distinct = np.empty(len(unique), object)
        distinct[:] = unique
    else:
        distinct = np.unique(flat)
    tokens = table_of(distinct)
    numbers = [looked_up(tokens, level) for level in levels]
    codes = [level[:, 0] for level in numbers]
    positions = np.cumsum([0, *map(len, levels)])
    pairs: list[Array] = []
    numbered: list[Array | None] = []
    grams = [_gram_of(codes, positions, 0, len(distinct))]
    for depth in range(1, len(levels)):
        longer = range(depth, len(levels))
        keys = {k: codes[k] * max(len(distinct), 1) + numbers[k][:, depth] for k in longer}
        table = np.unique(np.concatenate([*keys.values()]))
        for k in longer:
            codes[k] = np.searchsorted(table, keys[k])
        numbered.append(_numbers_of(table, len(grams[-1]) * max(len(distinct), 1)))
        pairs.append(table)
        grams.append(_gram_of(codes, positions, depth, len(table)))
    return Pool(tokens, max(len(distinct), 1), tuple(pairs), tuple(numbered), tuple(grams), int(positions[-1]))


def _numbers_of(pairs: Array, count: int) -> Array | None:
    """Return a table of `count` pairs in which each pair is found at once, None where it would be long."""
    if count > _MOST_NUMBERED:
        return None
    numbers = np.full(count, -1, np.int32)
    numbers[pairs] = np.arange(len(pairs))
    return numbers


def _gram_of(codes: Sequence[Array], positions: Array, level: int, count: int) -> Array:
    gram = np.full(count, -1, np.int64)
    gram[codes[level]] = positions[level] + np.arange(len(codes[level]))
    return gram


def count_ngrams(pool: Pool, rows: Array, shortest: int, longest: int, max_skip_count: int) -> tuple[Array, Array]:
    """Return the row and the position in the pool of every n-gram found in rows (N, C), one entry for each occurrence.

    Between the tokens of an n-gram lie 0 to `max_skip_count` others, always as many; single tokens count once.
    """
    return count_numbers(pool, looked_up(pool.tokens, rows), shortest, longest, max_skip_count)


def count_numbers(pool: Pool, tokens: Array, shortest: int, longest: int, max_skip_count: int) -> tuple[Array, Array]:
    """Do what `count_ngrams` does with numbers of tokens (N, C), -1 for what is in no n-gram."""
    N, C = tokens.shape
    deepest = min(longest, len(pool.grams))
    skips = 0 if longest == 1 else min(max_skip_count, max(C - 2, 0))
    width = C + (deepest - 1) * (skips + 1)  # so that no window of a row reaches into the next one
    flat = tokens.reshape(-1)
    if width > C:
        wide = np.full((N, width), -1, np.int64)
        wide[:, :C] = tokens
        flat = wide.reshape(-1)
    found_places, found_grams = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    begin = (flat >= 0).nonzero()[0]
    first = flat.take(begin)
    for stride in range(1, skips + 2):
        place, code = begin, first
        for level in range(1, deepest + 1):
            if level > 1:
                place, code = _climb(pool, flat, place, (level - 1) * stride, code, level)
            if level >= shortest and (level > 1 or stride == 1):
                gram = pool.grams[level - 1].take(code)
                counts = gram >= 0
                found_places.append(place[counts])
                found_grams.append(gram[counts])
    return np.concatenate(found_places) // max(width, 1), np.concatenate(found_grams)


def _climb(pool: Pool, flat: Array, place: Array, ahead: int, code: Array, level: int) -> tuple[Array, Array]:
    """Return the windows at `place` that go on with a known token `ahead` of it, and their numbers on `level`."""
    table, numbers = pool.pairs[level - 2], pool.numbers[level - 2]
    token = flat.take(place + ahead)
    key = code * pool.token_count + token
    if numbers is not None:
        at = numbers.take(key, mode="clip")
        known = (at >= 0) & (token >= 0)
    else:
        at = np.searchsorted(table, key).clip(max=max(len(table) - 1, 0))
        known = (token >= 0) & (table[at] == key) if len(table) else np.zeros(len(key), bool)
    return place[known], at[known]
