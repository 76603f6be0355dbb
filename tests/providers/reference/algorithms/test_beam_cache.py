"""Buffers of keys that beams share."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.beam_cache import choose_rows, follow_beams, used_keys, write_back

BUFFER = np.arange(4 * 1 * 3 * 1, dtype=np.float32).reshape(4, 1, 3, 1)


def test_each_key_is_read_from_the_row_of_its_beam() -> None:
    """Rows 2 and 3 are the beams of the second batch element; the new key, the last, is a row's own."""
    beams = np.array([[[1, 0, 9], [0, 0, 9]], [[1, 1, 9], [0, 1, 9]]], np.int32)
    rows = choose_rows(beams, 4, 2)
    assert rows.tolist() == [[1, 0, 0], [0, 0, 1], [3, 3, 2], [2, 3, 3]]
    assert follow_beams(BUFFER, rows)[:, 0, :, 0].tolist() == [[3, 1, 2], [0, 1, 5], [9, 10, 8], [6, 10, 11]]


def test_what_is_written_back_replaces_the_first_keys() -> None:
    """The rest of the buffer stays; without a buffer the new keys are all there is."""
    new = np.full((4, 1, 2, 1), -1, np.float32)
    assert write_back(BUFFER, new)[0, 0, :, 0].tolist() == [-1, -1, 2]
    assert BUFFER[0, 0, 0, 0] == 0
    assert write_back(None, new) is new


def test_used_keys_leave_space_for_new_ones() -> None:
    """Three keys hold two and one more."""
    assert used_keys(np.array([2], np.int32), BUFFER, 1) == 2
    with pytest.raises(InvalidArgument, match="past_sequence_length is 2 and 2 keys are new; the shared buffer has space for 3"):
        used_keys(np.array([2], np.int32), BUFFER, 2)


def test_beams_that_do_not_exist_are_errors() -> None:
    """The shape is (batch, beams, length), and each number one of the beams."""
    with pytest.raises(InvalidArgument, match="expected \\(batch, beams, 2 or more\\) for 4 rows"):
        choose_rows(np.zeros((3, 2, 3), np.int32), 4, 2)
    with pytest.raises(InvalidArgument, match="beam_width is 4"):
        choose_rows(np.zeros((2, 2, 3), np.int32), 4, 2, np.array([4], np.int32))
    with pytest.raises(InvalidArgument, match="names beams 7 to 7; expected 0 to 1"):
        choose_rows(np.full((2, 2, 3), 7, np.int32), 4, 2)
