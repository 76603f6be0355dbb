"""Facts about counting n-grams."""

import dataclasses

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.ngrams import count_ngrams, pool_of

POOL = pool_of(np.array([5, 6, 5, 6, 6, 6, 5, 6, 7]), (0, 2, 6))
"""The 1-grams 5 and 6, the 2-grams 5 6 and 6 6, the 3-gram 5 6 7."""


def counted(rows, shortest=1, longest=3, skips=0, pool=POOL):
    row, gram = count_ngrams(pool, np.array(rows), shortest, longest, skips)
    table = np.zeros((len(rows), pool.gram_count), int)
    np.add.at(table, (row, gram), 1)
    return table.tolist()


def test_windows_climb_from_prefix_to_prefix():
    """Rows are apart; a token that no n-gram has breaks a window."""
    assert counted([[5, 6, 7, 6], [6, 6, 9, 5]]) == [[1, 2, 1, 0, 1], [1, 2, 0, 1, 0]]


def test_lengths_outside_the_range_do_not_count():
    """Shorter n-grams are climbed through, not counted."""
    assert counted([[5, 6, 7, 6]], shortest=2, longest=2) == [[0, 0, 1, 0, 0]]


def test_skips_widen_the_windows():
    """Single tokens count once, however many skips are tried."""
    assert counted([[5, 6, 6, 6]], skips=2) == [[1, 3, 3, 3, 0]]


def test_pairs_are_found_by_search_where_a_table_would_be_long():
    """With the same counts."""
    rows = np.random.default_rng(0).integers(4, 9, (20, 9))
    searched = dataclasses.replace(POOL, numbers=(None, None))
    assert POOL.numbers[0] is not None
    assert counted(rows, skips=2) == counted(rows, skips=2, pool=searched)


def test_strings_are_tokens():
    """Any hashable text; rows may be empty."""
    flat = np.array(["a", "b", "a", "b"], object)
    pool = pool_of(flat, (0, 2))
    assert counted(np.array([["a", "b"]], object), pool=pool) == [[1, 1, 1]]
    assert counted(np.zeros((1, 0), object), pool=pool) == [[0, 0, 0]]


@pytest.mark.parametrize("starts", [(0, 1), (0, 10), (2, 0)])
def test_a_pool_that_is_not_whole_is_rejected(starts):
    """2-grams need two tokens each."""
    with pytest.raises(InvalidArgument, match="not whole"):
        pool_of(np.arange(4), starts)
