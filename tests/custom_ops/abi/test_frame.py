"""A kernel's context."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.custom_ops.abi.frame import HEADER_WORDS, MADE, Frame, find_frame
from sardonyx.custom_ops.abi.values import PRESENT, blank_value
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument


def _frame(dirty: list[Frame]) -> Frame:
    return Frame([blank_value(), None], [blank_value(), None], [0], lambda index, types: types[0] or DataType.FLOAT, dirty)


def test_the_words_lead_to_the_values() -> None:
    """0 for one that is left out."""
    frame = _frame([])
    assert list(frame.words[:2]) == [2, 2]
    assert frame.inputs[0] is not None
    assert list(frame.words[HEADER_WORDS : HEADER_WORDS + 2]) == [frame.inputs[0].address, 0]


def test_an_output_is_allocated_once_for_a_shape() -> None:
    """Of the type that the inputs decide; the frame is known as one that holds something."""
    dirty: list[Frame] = []
    frame = _frame(dirty)
    assert frame.inputs[0] is not None
    frame.inputs[0].set_array(np.zeros(2, np.int64))
    value = frame.output(0, (2, 3))
    assert value is not None
    assert (value.dtype, value.shape, value.words[PRESENT]) == (DataType.INT64, (2, 3), MADE)
    array = value.array
    assert frame.output(0, (2, 3)) is value
    assert value.array is array
    assert dirty == [frame]


def test_an_output_that_is_left_out_is_none() -> None:
    """One that there is not is refused."""
    frame = _frame([])
    assert frame.output(1, (2,)) is None
    with pytest.raises(InvalidArgument, match="output 2 of a node that has 2"):
        frame.output(2, (2,))


def test_a_closed_frame_is_not_found() -> None:
    """A library that kept its address gets an error."""
    frame = _frame([])
    assert find_frame(frame.address) is frame
    frame.close()
    with pytest.raises(InvalidArgument, match="kernel context"):
        find_frame(frame.address)
