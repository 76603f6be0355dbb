"""Tests of the memory of caches."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.generate.cache import GrowingCache, SharedCache, empty_past
from sardonyx.generate.signature import CacheSlot

SLOT = CacheSlot("0", "past", "present", DataType.FLOAT, (None, 2, None, 3), 0, 2, False)


def _step(cache: GrowingCache, value: float, count: int = 1) -> None:
    """Do what a run does: append rows of `value` to the past."""
    past, target = cache.feeds()["past"], cache.targets(count)["present"]
    target[:, :, : past.shape[2]] = past
    target[:, :, past.shape[2] :] = value
    cache.advance(count)


def test_a_growing_cache_keeps_what_runs_append() -> None:
    """Two buffers in turn hold the same rows as one that never moves."""
    cache = GrowingCache([SLOT], 2)
    for value in range(200):
        _step(cache, value)
    assert np.array_equal(cache.feeds()["past"], np.broadcast_to(np.arange(200.0)[:, None], (2, 2, 200, 3)))


def test_buffers_are_made_a_number_of_times_that_grows_like_the_logarithm() -> None:
    """1,000 steps need no more than 20 buffers, and past and target never overlap."""
    cache, seen = GrowingCache([SLOT], 1), set()
    for value in range(1000):
        past, target = cache.feeds()["past"], cache.targets(1)["present"]
        assert not np.shares_memory(past, target)
        seen.add(target.ctypes.data)
        _step(cache, value)
    assert len(seen) <= 20


def test_rows_are_selected_in_any_order() -> None:
    """A row may come twice, and steps go on from there."""
    cache = GrowingCache([SLOT], 3)
    _step(cache, 1)
    cache.feeds()["past"][:, 0, 0, 0] = [5, 6, 7]
    cache.select([2, 2, 0, 1])
    _step(cache, 9)
    assert cache.feeds()["past"][:, 0, :, 0].tolist() == [[7, 9], [7, 9], [5, 9], [6, 9]]


def test_columns_are_cut_from_both_ends() -> None:
    """What is left is what lay between."""
    cache = GrowingCache([SLOT], 1)
    for value in range(5):
        _step(cache, value)
    cache.cut(1, 4)
    assert (cache.feeds()["past"][0, 0, :, 0].tolist(), cache.length) == ([1, 2, 3], 3)


def test_steps_go_on_after_a_cut_of_one_head() -> None:
    """Where what is left is dense already, and nothing was copied."""
    cache = GrowingCache([dataclasses.replace(SLOT, shape=(None, 1, None, 3))], 1)
    for value in range(6):
        _step(cache, value)
    cache.cut(0, 3)
    for value in range(6, 90):
        _step(cache, value)
    assert cache.feeds()["past"][0, 0, :, 0].tolist() == [0, 1, 2, *range(6, 90)]


def test_shorter_caches_are_joined_behind_zeros() -> None:
    """The last tokens of all rows lie side by side."""
    one, other = GrowingCache([SLOT], 1), GrowingCache([SLOT], 1)
    _step(one, 1, 3)
    _step(other, 2)
    assert one.joined([other]).feeds()["past"][:, 0, :, 0].tolist() == [[1, 1, 1], [0, 0, 2]]


def test_a_shared_cache_gives_one_buffer_as_past_and_present() -> None:
    """It has space for what comes, and the next steps get the same memory."""
    cache = SharedCache([SLOT], 1)
    target = cache.targets(5)["present"]
    cache.advance(5)
    assert cache.feeds()["past"] is target
    assert cache.targets(1)["present"] is target


def test_a_full_shared_cache_moves_to_a_larger_buffer() -> None:
    """With what it holds."""
    cache = SharedCache([SLOT], 1)
    cache.targets(2)["present"][:, :, :2] = 7
    cache.advance(2)
    cache.reserve(1000)
    assert cache.capacity >= 1000
    assert (cache.feeds()["past"][:, :, :2] == 7).all()


def test_rows_of_shared_caches_are_joined_with_their_lengths() -> None:
    """Each row lies at the front of its part."""
    one, other = SharedCache([SLOT], 1), SharedCache([SLOT], 1)
    one.targets(3)["present"][:, :, :3] = 1
    one.advance(3)
    other.targets(1)["present"][:, :, :1] = 2
    other.advance(1)
    joined = one.joined([other])
    assert joined.lengths.tolist() == [3, 1]
    assert joined.feeds()["past"][:, 0, 0, 0].tolist() == [1, 2]
    joined.select([1])
    assert (joined.lengths.tolist(), joined.feeds()["past"][0, 0, 0, 0]) == ([1], 2)


def test_rows_of_a_shared_cache_change_places_in_its_buffers() -> None:
    """What is bound stays bound."""
    cache = SharedCache([SLOT], 2)
    cache.targets(2)["present"][:, :, :2] = np.array([1, 2])[:, None, None, None]
    cache.advance(2)
    held = cache.feeds()["past"]
    cache.select([1, 1])
    assert cache.feeds()["past"] is held
    assert held[:, 0, 0, 0].tolist() == [2, 2]


def test_rows_that_leave_a_shared_cache_let_the_others_close_up() -> None:
    """In the same buffers, until half of the rows have left; then what they held is freed."""
    cache = SharedCache([SLOT], 4)
    cache.targets(2)["present"][:, :, :2] = np.arange(4)[:, None, None, None]
    cache.advance(2)
    held, whole = cache.feeds()["past"], cache.size_bytes
    cache.select([0, 2, 3])
    assert np.shares_memory(cache.feeds()["past"], held)
    assert cache.feeds()["past"][:, 1, 1, 2].tolist() == [0, 2, 3]
    assert (cache.rows, cache.lengths.tolist(), cache.size_bytes) == (3, [2, 2, 2], whole)
    assert cache.feeds()["past"].flags.c_contiguous
    cache.select([1, 2])
    assert not np.shares_memory(cache.feeds()["past"], held)
    assert cache.feeds()["past"][:, 0, 0, 0].tolist() == [2, 3]
    assert cache.size_bytes == whole // 2
    cache.reserve(1000)
    assert cache.feeds()["past"][:, 0, 1, 0].tolist() == [2, 3]


def test_a_size_that_the_model_leaves_open_is_an_error() -> None:
    """It names the cache."""
    slot = CacheSlot("0", "past", "present", DataType.FLOAT, (None, None, None, 3), 0, 2, False)
    with pytest.raises(InvalidArgument, match="'past' open besides batch and length"):
        empty_past(slot, 1)
