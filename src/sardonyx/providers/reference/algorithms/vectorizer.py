"""Rows of columns that count n-grams, with weights: of a few tokens by dictionaries, of many by arrays."""

from __future__ import annotations

import collections
import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.providers.reference.algorithms.label_tables import looked_up
from sardonyx.providers.reference.algorithms.ngrams import Pool, count_numbers

__all__ = ["Vectorizer", "vectorizer_of"]

_FEW = 400
"""Up to how many looks at tokens a loop takes less than calls of NumPy."""
_MOST_PAIRS = 1 << 18
"""How many n-grams of two tokens and more are also kept as dictionaries."""
_LARGE = np.float32(1e30)
_EXACT_COUNT = 1 << 24
"""The largest number to which float32 counts by ones."""


@dataclasses.dataclass(frozen=True, slots=True)
class Vectorizer:
    """What a node counts, and where it writes it."""

    pool: Pool
    """The n-grams."""
    columns: Array
    """The column of each n-gram."""
    width: int
    """How many columns there are."""
    weights: Array | None
    """What each n-gram is multiplied by, float32; None where nothing is."""
    adds_up: bool
    """Whether each occurrence counts; else an n-gram counts once or not at all."""
    lengths: tuple[int, int]
    """The least and the most tokens of the n-grams that count."""
    max_skip_count: int
    """How many tokens may lie between two of an n-gram."""
    is_one_to_one: bool
    """Whether no two n-grams have one column."""
    tables: _Tables | None
    """The same for few tokens; None where that would take much memory, or products may overflow, which NumPy would warn of."""

    def write(self, rows: Array, output: Array) -> None:
        """Write the columns of `rows` (N, C) into zeros (N, width), float32."""
        if self.tables is not None and rows.size * self._looks(rows.shape[1]) <= _FEW:
            self._write_few(self.tables, rows.tolist(), output)
        else:
            self._write_numbers(looked_up(self.pool.tokens, rows), output)

    def write_texts(self, rows: Sequence[Sequence[str]], output: Array) -> None:
        """Write the columns of rows of texts, each as long as it is, into zeros (N, width), float32."""
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        count, longest = int(lengths.sum()), int(lengths.max(initial=0))
        if self.tables is not None and count * self._looks(longest) <= _FEW:
            self._write_few(self.tables, rows, output)
            return
        get, texts = self.pool.tokens.by_string.get, itertools.chain.from_iterable(rows)
        numbers = np.full((len(rows), longest), -1, np.int64)
        numbers[np.arange(longest) < lengths[:, None]] = np.fromiter(map(get, texts, itertools.repeat(-1)), np.int64, count)
        self._write_numbers(numbers, output)

    def _write_numbers(self, tokens: Array, output: Array) -> None:
        row, gram = count_numbers(self.pool, tokens, *self.lengths, self.max_skip_count)
        if self.is_one_to_one and tokens.shape[1] * (self.max_skip_count + 1) < _EXACT_COUNT:
            self._add(row, gram, output.reshape(-1))
        else:
            self._add_sorted(row, gram, output)

    def _looks(self, C: int) -> int:
        """Return how often each token is looked at."""
        deepest = min(self.lengths[1], len(self.pool.grams))
        return 1 if deepest == 1 else 2 * deepest * (min(self.max_skip_count, C) + 1)

    def _write_few(self, tables: _Tables, rows: Sequence[Sequence[str | int]], output: Array) -> None:
        if self.is_one_to_one and self.lengths[0] == min(self.lengths[1], len(tables.grams)) == 1:
            for row, tokens in zip(output, rows, strict=True):
                tables.write_single(tokens, row, adds_up=self.adds_up)
            return
        columns, weights = tables.columns, tables.weights
        for row, tokens in zip(output, rows, strict=True):
            counts = tables.count(tokens, self.lengths, self.max_skip_count)
            for gram in sorted(counts):
                count = counts[gram] if self.adds_up else 1
                row[columns[gram]] += count if weights is None else count * weights[gram]

    def _add(self, row: Array, gram: Array, flat: Array) -> None:
        places = row * self.width + self.columns[gram]
        if not self.adds_up:
            flat[places] = 1
        else:
            np.add.at(flat, places, np.float32(1))
        if self.weights is not None:
            flat[places] = flat[places] * self.weights[gram]

    def _add_sorted(self, row: Array, gram: Array, output: Array) -> None:
        count = max(self.pool.gram_count, 1)
        pairs, counts = np.unique(row * count + gram, return_counts=True)
        row, gram = np.divmod(pairs, count)
        values = counts.astype(np.float32) if self.adds_up else np.ones(len(counts), np.float32)
        if self.weights is not None:
            values *= self.weights[gram]
        np.add.at(output, (row, self.columns[gram]), values)


@dataclasses.dataclass(frozen=True, slots=True)
class _Tables:
    """A pool as dictionaries and lists, which a few tokens are looked up in one by one."""

    tokens: Mapping[Any, int]
    """The number of each token; Any, for texts or integers."""
    token_count: int
    """How many numbers there are."""
    pairs: tuple[Mapping[int, int], ...]
    """For each level from 2 on, prefix * token_count + token -> number."""
    grams: tuple[Sequence[int], ...]
    """For each level from 1 on, the position in the pool of each number's n-gram, -1 if it is a prefix only."""
    columns: Sequence[int]
    """The column of each n-gram."""
    weights: Sequence[float] | None
    """The weight of each n-gram."""
    first_columns: Sequence[int]
    """The column of each token's own n-gram, -1 where it has none."""
    first_weights: Sequence[float] | None
    """The weight of that."""

    def write_single(self, tokens: Sequence[str | int], row: Array, *, adds_up: bool) -> None:
        """Write the columns of single tokens into zeros, where no two have one column."""
        columns, weights = self.first_columns, self.first_weights
        for number, count in collections.Counter(map(self.tokens.get, tokens)).items():
            if number is not None and (column := columns[number]) >= 0:
                value = count if adds_up else 1
                row[column] = value if weights is None else value * weights[number]

    def count(self, tokens: Sequence[str | int], lengths: tuple[int, int], max_skip_count: int) -> Mapping[int, int]:
        """Return n-gram -> how often it occurs, as `count_numbers` finds them."""
        shortest, deepest = lengths[0], min(lengths[1], len(self.grams))
        counts: dict[int, int] = {}
        numbers = [*map(self.tokens.get, tokens, itertools.repeat(-1))]
        if shortest == 1:
            first = self.grams[0]
            for number in numbers:
                if number >= 0 and (gram := first[number]) >= 0:
                    counts[gram] = counts.get(gram, 0) + 1
        if deepest > 1:
            skips = min(max_skip_count, max(len(tokens) - 2, 0))
            for stride in range(1, skips + 2):
                self._count_longer(numbers, stride, max(shortest, 2), deepest, counts)
        return counts

    def _count_longer(self, numbers: Sequence[int], stride: int, shortest: int, deepest: int, counts: dict[int, int]) -> None:
        for start, number in enumerate(numbers):
            code: int | None = number if number >= 0 else None
            for level, token in enumerate(numbers[start + stride : start + stride * (deepest - 1) + 1 : stride], 2):
                if code is None or token < 0:
                    break
                code = self.pairs[level - 2].get(code * self.token_count + token)
                if code is not None and level >= shortest and (gram := self.grams[level - 1][code]) >= 0:
                    counts[gram] = counts.get(gram, 0) + 1


def vectorizer_of(
    pool: Pool, columns: Array, weights: Array | None, *, adds_up: bool, lengths: tuple[int, int], max_skip_count: int
) -> Vectorizer:
    """Return what writes the n-grams of a pool into columns, one for each; other arguments as the fields of `Vectorizer`."""
    overflows = weights is not None and bool((~(np.abs(weights) < _LARGE)).any())
    is_small = sum(map(len, pool.pairs)) <= _MOST_PAIRS
    return Vectorizer(
        pool=pool,
        columns=columns,
        width=int(columns.max(initial=-1)) + 1,
        weights=weights,
        adds_up=adds_up,
        lengths=lengths,
        max_skip_count=max_skip_count,
        is_one_to_one=len(np.unique(columns)) == len(columns),
        tables=_tables_of(pool, columns, weights) if is_small and not overflows else None,
    )


def _tables_of(pool: Pool, columns: Array, weights: Array | None) -> _Tables:
    table, first = pool.tokens, pool.grams[0]
    return _Tables(
        tokens=table.by_string if table.holds_strings else dict(zip(table.keys.tolist(), table.places.tolist(), strict=True)),
        token_count=pool.token_count,
        pairs=tuple([{pair: number for number, pair in enumerate(pairs.tolist())} for pairs in pool.pairs]),
        grams=tuple([grams.tolist() for grams in pool.grams]),
        columns=columns.tolist(),
        weights=None if weights is None else weights.tolist(),
        first_columns=np.append(columns, -1)[first].tolist(),
        first_weights=None if weights is None else np.append(weights, np.float32(0))[first].tolist(),
    )
