"""Events of a profile as intervals: what each takes without the events inside it, and what of a run lies outside of its steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

__all__ = ["PARTS", "outside_us", "own_us"]

PARTS = (
    "before the first program: inputs, sizes, memory",
    "in programs, around their steps",
    "between programs",
    "after the last program: results",
)
"""Parts of a run outside of its steps."""
_ROUNDING_US = 0.002
Span: TypeAlias = tuple[float, float]


def own_us(events: Sequence[Mapping[str, Any]]) -> list[float]:
    """Return for each event its duration less those of the events that lie in it, in its thread; O(events log events).

    What the program of a body (`cat` is Partition) takes around its steps is counted to the step that runs the body, such as a
    loop, and not to the program, which has 0 then.

    Args:
        events: with `ts`, `dur`, `cat` and, where there are several threads, `tid`, in microseconds; Any, as they come from JSON.
    """
    own = [float(event["dur"]) for event in events]
    order = sorted(range(len(events)), key=lambda place: _order(events[place], place))
    around: list[int] = []
    bodies: list[tuple[int, int]] = []
    for place in order:
        while around and not _lies_in(events[place], events[around[-1]]):
            around.pop()
        if around:
            own[around[-1]] -= events[place]["dur"]
            if events[place].get("cat") == "Partition" and events[around[-1]].get("cat") == "Node":
                bodies.append((place, around[-1]))
        around.append(place)
    for body, step in bodies:
        own[step] += own[body]
        own[body] = 0.0
    return own


def _order(event: Mapping[str, Any], place: int) -> tuple[object, ...]:
    """Return by what events are sorted, so that each comes before those in it: of equal ones the one that a file has later."""
    return str(event.get("tid", "")), event["ts"], -event["dur"], -place


def _lies_in(event: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if event.get("tid") != other.get("tid"):
        return False
    end_us, other_end_us = (item["ts"] + item["dur"] for item in (event, other))
    return bool(event["ts"] < other_end_us and end_us <= other_end_us + _ROUNDING_US)


def outside_us(run: Span, programs: Sequence[Span], inside_us: float) -> tuple[float, ...]:
    """Return how long each of PARTS takes in a run.

    Args:
        run: when it began and ended, in microseconds.
        programs: the same of programs, which may overlap where several threads run them.
        inside_us: what programs take around their steps.
    """
    if not programs:
        return (run[1] - run[0], 0.0, 0.0, 0.0)
    begin, end = min(start for start, _ in programs), max(stop for _, stop in programs)
    return (begin - run[0], inside_us, end - begin - _covered_us(programs), run[1] - end)


def _covered_us(spans: Sequence[Span]) -> float:
    """Return how long any of the spans lasts."""
    covered, until = 0.0, float("-inf")
    for start, stop in sorted(spans):
        covered += max(0.0, stop - max(start, until))
        until = max(until, stop)
    return covered
