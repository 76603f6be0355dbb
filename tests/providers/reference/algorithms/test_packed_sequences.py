"""Where packed sequences lie."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.packed_sequences import captured_counts, packed_ranges


def test_a_sequence_ends_where_the_next_begins() -> None:
    """The last ends with the tokens."""
    assert packed_ranges(np.array([0, 2, 5], np.int32), 5, "bounds") == [slice(0, 2), slice(2, 5)]


@pytest.mark.parametrize("bounds", [[1, 5], [0, 4], [0, 6], [0, 3, 2, 5], [0, 2, 2, 5], [0], [], [[0, 5]]])
def test_bounds_that_do_not_rise_from_0_to_the_tokens_are_refused(bounds: list[int]) -> None:
    """Nor are they anything but a row of at least two."""
    with pytest.raises(InvalidArgument, match="bounds"):
        packed_ranges(np.array(bounds, np.int32), 5, "bounds")


def test_sequences_may_be_empty_where_that_is_said() -> None:
    """They still may not fall."""
    assert packed_ranges(np.array([0, 0, 5]), 5, "bounds", may_be_empty=True) == [slice(0, 0), slice(0, 5)]
    with pytest.raises(InvalidArgument, match="never falls"):
        packed_ranges(np.array([0, 6, 5]), 5, "bounds", may_be_empty=True)


def test_as_many_states_are_captured_as_there_are() -> None:
    """Of those asked for: no more than slots, and no more than tokens."""
    ranges = [slice(0, 2), slice(2, 9), slice(9, 12), slice(12, 15)]
    assert captured_counts(np.array([5, 5, -3, 1], np.int32), 4, ranges) == [2, 4, 0, 1]
    assert captured_counts(None, 0, ranges) == [0] * 4


@pytest.mark.parametrize(
    ("counts", "capacity", "message"),
    [
        ([1], 9, "0 to 8"),
        ([1], -1, "0 to 8"),
        ([1], 0, "is given"),
        (None, 1, "is left out"),
        ([1, 2], 1, "has shape"),
        (1, 1, "has shape"),
    ],
)
def test_counts_that_do_not_fit_are_refused(counts: list[int] | None, capacity: int, message: str) -> None:
    """They are given exactly where there are slots."""
    with pytest.raises(InvalidArgument, match=message):
        captured_counts(None if counts is None else np.array(counts, np.int32), capacity, [slice(0, 3)])
