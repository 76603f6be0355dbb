"""Sequences of different lengths that lie one after another in one axis, as operators of com.microsoft take them."""

from __future__ import annotations

import itertools

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import as_ints

__all__ = ["captured_counts", "packed_ranges"]

_MOST_CAPTURED = 8
"""States of a sequence that an operator may be asked for."""


def packed_ranges(bounds: Array, total: int, name: str, *, may_be_empty: bool = False) -> list[slice]:
    """Return where each sequence lies among `total` tokens; bounds (B + 1) are where each begins, and the end of the last.

    Raises InvalidArgument for bounds that do not rise from 0 to `total`, and for an empty sequence unless `may_be_empty`.
    """
    if bounds.ndim != 1 or bounds.size < 2:
        raise InvalidArgument(f"{name} has shape {bounds.shape}; expected (sequences + 1,) with at least one sequence")
    places = as_ints(bounds, name)
    ranges = [slice(start, end) for start, end in itertools.pairwise(places)]
    shortest = min(part.stop - part.start for part in ranges)
    if places[0] != 0 or places[-1] != total or shortest < (0 if may_be_empty else 1):
        least = "never falls" if may_be_empty else "rises at each step"
        raise InvalidArgument(
            f"{name} goes from {places[0]} to {places[-1]}, with a shortest sequence of {shortest} tokens; expected one that "
            f"{least} from 0 to {total}, the tokens"
        )
    return ranges


def captured_counts(capture_count: Array | None, capacity: int, ranges: list[slice]) -> list[int]:
    """Return of how many tokens of each sequence the state is captured: as many as are asked for, there are and have a slot.

    Raises InvalidArgument for a capacity outside [0, 8], and unless capture_count (B) is given exactly where it is not 0.
    """
    if not 0 <= capacity <= _MOST_CAPTURED:
        raise InvalidArgument(f"state_update_capacity is {capacity}; expected 0 to {_MOST_CAPTURED}")
    if (capture_count is None) != (capacity == 0):
        is_given = "left out" if capture_count is None else "given"
        raise InvalidArgument(
            f"capture_count is {is_given} with state_update_capacity {capacity}; give it exactly where that is not 0"
        )
    if capture_count is None:
        return [0] * len(ranges)
    if capture_count.shape != (len(ranges),):
        raise InvalidArgument(
            f"capture_count has shape {capture_count.shape}; expected ({len(ranges)},), a number for each sequence"
        )
    counts = zip(as_ints(capture_count, "capture_count"), ranges, strict=True)
    return [max(0, min(count, capacity, part.stop - part.start)) for count, part in counts]
