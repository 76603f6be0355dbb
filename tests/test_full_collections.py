"""Tests of full collections that wait."""

from __future__ import annotations

import gc
import os
import sys
import threading
from collections.abc import Iterator
from types import FrameType

import pytest

from sardonyx.full_collections import without_full_collections

pytestmark = pytest.mark.skipif(sys.version_info >= (3, 14), reason="collections are made in small steps")


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[tuple[int, int, int]]:
    """Thresholds that are reached soon, and what they were before afterwards.

    A full collection waits until a quarter as many objects are new as are old: the old ones of other tests do not count.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.collect()
    gc.set_threshold(100, 2, 3)
    yield gc.get_threshold()
    gc.set_threshold(*before)
    gc.unfreeze()


class Counted:
    """The generations that are collected within a block."""

    def __enter__(self) -> list[int]:
        self.found: list[int] = []
        gc.callbacks.append(self._note)
        return self.found

    def __exit__(self, *_: object) -> None:
        gc.callbacks.remove(self._note)

    def _note(self, phase: str, info: dict[str, int]) -> None:
        if phase == "start":
            self.found.append(info["generation"])


def make_many() -> list[list[int]]:
    """Many objects that the collector follows."""
    return [[] for _ in range(200_000)]


def test_only_full_collections_wait() -> None:
    """Young objects are collected in the block."""
    with without_full_collections(), Counted() as found:
        kept = make_many()
    assert set(found) == {0, 1}
    del kept


def test_a_collection_that_came_due_comes_with_the_users_next_objects() -> None:
    """After the block."""
    with without_full_collections():
        kept = make_many()
    with Counted() as found:
        kept += make_many()
    assert 2 in found


def test_a_collection_that_came_due_comes_before_the_next_block() -> None:
    """So that many blocks, one soon after another, do not put it off for ever."""
    with without_full_collections():
        kept = make_many()
    with Counted() as found, without_full_collections():
        assert 2 in found
    del kept


def test_nothing_is_collected_after_a_small_block() -> None:
    """Where nothing is due."""
    gc.collect()
    with Counted() as found, without_full_collections():
        pass
    assert 2 not in found


def test_thresholds_are_the_users_again(thresholds: tuple[int, int, int]) -> None:
    """Also after an exception."""

    def fail() -> None:
        assert gc.get_threshold() != thresholds
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), without_full_collections():
        fail()
    assert gc.get_threshold() == thresholds


def test_thresholds_set_meanwhile_stay() -> None:
    """They are the user's."""
    with without_full_collections():
        gc.set_threshold(500, 5, 7)
    assert gc.get_threshold() == (500, 5, 7)


def test_a_disabled_collector_is_left_alone(thresholds: tuple[int, int, int]) -> None:
    """It collects nothing anyway."""
    gc.disable()
    try:
        with without_full_collections():
            assert gc.get_threshold() == thresholds
    finally:
        gc.enable()


@pytest.mark.parametrize("objects", [0, 1_000_000])
def test_objects_that_are_collected_seldom_or_never_are_left_alone(objects: int) -> None:
    """No threshold is changed, and no objects are made to have a collection come."""
    kept = make_many()
    gc.set_threshold(objects, 2, 3)
    with Counted() as found, without_full_collections():
        assert gc.get_threshold() == (objects, 2, 3)
    assert found == []
    del kept


def test_a_block_may_begin_in_a_finalizer() -> None:
    """Of an object that is collected as a block begins."""
    begun = []

    class Cycle:
        def __init__(self) -> None:
            self.own = self

        def __del__(self) -> None:
            with without_full_collections():
                begun.append(gc.get_threshold())

    with without_full_collections():
        kept = make_many()
        Cycle()
        gc.disable()
    gc.enable()
    with without_full_collections():
        pass
    assert len(begun) == 1
    del kept


def test_one_block_after_another_leaves_gaps(thresholds: tuple[int, int, int]) -> None:
    """A block that begins in another thread before this one ends does not prolong it."""
    begun, may_end = threading.Event(), threading.Event()

    def other() -> None:
        with without_full_collections():
            begun.set()
            may_end.wait()

    thread = threading.Thread(target=other)
    with without_full_collections():
        thread.start()
        begun.wait()
    assert gc.get_threshold() == thresholds
    may_end.set()
    thread.join()
    assert gc.get_threshold() == thresholds


def test_the_child_of_a_fork_has_the_users_thresholds(thresholds: tuple[int, int, int]) -> None:
    """The thread that would give them back may not be there."""
    with without_full_collections():
        child = os.fork()
        if child == 0:
            os._exit(0 if gc.get_threshold() == thresholds else 1)
        assert os.waitpid(child, 0)[1] == 0


def test_a_block_whose_end_was_interrupted_holds_nothing_back(thresholds: tuple[int, int, int]) -> None:
    """The next one gives back what it took."""

    def interrupt(frame: FrameType, event: str, argument: object) -> None:
        if frame.f_code.co_name == "end":
            raise KeyboardInterrupt

    before = sys.gettrace()
    with pytest.raises(KeyboardInterrupt), without_full_collections():
        sys.settrace(interrupt)
    sys.settrace(before)
    assert gc.get_threshold() != thresholds
    with without_full_collections():
        pass
    assert gc.get_threshold() == thresholds
