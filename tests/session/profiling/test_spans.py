"""Events as intervals."""

from __future__ import annotations

from typing import Any

import pytest

from sardonyx.session.profiling.spans import PARTS, outside_us, own_us


def _event(begin: float, duration: float, thread: int = 1) -> dict[str, Any]:
    return {"ts": begin, "dur": duration, "tid": thread}


def test_an_event_is_counted_without_those_in_it() -> None:
    """Also where these have others in them."""
    assert own_us([_event(2, 1), _event(1, 3), _event(0, 10)]) == [1, 2, 7]


def test_events_one_after_another_are_counted_whole() -> None:
    """Where one ends the next may begin."""
    assert own_us([_event(0, 5), _event(5, 0), _event(5, 5)]) == [5, 0, 5]


def test_of_equal_events_the_later_one_is_around_the_other() -> None:
    """Files have events in the order in which they ended."""
    assert own_us([_event(0, 5), _event(0, 5)]) == [5, 0]


def test_threads_are_counted_apart() -> None:
    """What another thread does at the same time is no part of an event."""
    assert own_us([_event(1, 3, thread=2), _event(0, 10)]) == [3, 10]


def test_a_run_is_divided_by_its_programs() -> None:
    """Before, inside, between and after them; programs that overlap are counted once."""
    found = outside_us((0, 100), [(10, 40), (30, 60), (70, 95)], 7)
    assert dict(zip(PARTS, found, strict=True)) == pytest.approx(dict(zip(PARTS, (10, 7, 10, 5), strict=True)))


def test_a_run_without_programs_is_all_before_them() -> None:
    """A model that gives out its inputs has none."""
    assert outside_us((5, 25), [], 0) == (20, 0, 0, 0)


def test_what_a_body_takes_around_its_steps_is_its_loops() -> None:
    """The programs of a run itself keep theirs."""
    body = [_event(3, 1) | {"cat": "Node"}, _event(2, 4) | {"cat": "Partition"}]
    events = [*body, _event(1, 8) | {"cat": "Node"}, _event(0, 10) | {"cat": "Partition"}]
    assert own_us(events) == [1, 0, 7, 2]
