"""Values of libraries: words in memory, and Python's side of them."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.custom_ops.abi.values import (
    COUNT,
    DATA,
    DIMS,
    RANK,
    TYPE,
    blank_value,
    find_value,
    make_info,
    make_value,
    new_array,
    release_value,
)
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.errors import NotImplemented as NotSupported


def test_the_words_describe_the_array() -> None:
    """Address, type, rank, count and dimensions."""
    array = np.zeros((2, 3), np.int64)
    words = make_value(array).words
    assert (words[DATA], words[TYPE], words[RANK], words[COUNT]) == (array.ctypes.data, DataType.INT64, 2, 6)
    assert list(words[8:10]) == [2, 3]


def test_dimensions_beyond_eight_lie_elsewhere() -> None:
    """The word of their address leads there."""
    import ctypes

    value = make_value(np.zeros((1,) * 11 + (2,), np.float32))
    assert list((ctypes.c_int64 * 12).from_address(value.words[DIMS]))[-2:] == [1, 2]


def test_what_is_released_is_not_found() -> None:
    """A library that uses it afterwards gets an error; a value of a frame is not its to release."""
    value, own = make_value(np.zeros(1)), blank_value()
    release_value(value.address)
    release_value(own.address)
    assert find_value(own.address) is own
    with pytest.raises(InvalidArgument, match="where a value or its type is expected"):
        find_value(value.address)


def test_elements_below_a_byte_are_refused() -> None:
    """Libraries expect them packed."""
    with pytest.raises(NotSupported, match="int4"):
        make_value(np.zeros(2, DataType.INT4.numpy))


def test_strings_have_no_address() -> None:
    """They are read and written as texts."""
    value = make_value(np.array(["a", "ü"], object))
    assert value.words[DATA] == 0
    assert value.texts() == [b"a", b"\xc3\xbc"]
    value.writable_texts()[0] = "b"
    assert value.texts()[0] == b"b"
    with pytest.raises(InvalidArgument, match="asks for strings"):
        make_info(DataType.FLOAT, (2,)).texts()


def test_new_arrays_are_empty_texts_or_memory() -> None:
    """A negative size is refused."""
    assert new_array(DataType.STRING, (2,)).tolist() == ["", ""]
    assert new_array(DataType.BOOL, (2, 0)).shape == (2, 0)
    with pytest.raises(InvalidArgument, match=r"shape \[-1\]"):
        new_array(DataType.FLOAT, (-1,))
