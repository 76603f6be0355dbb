"""What callbacks get that read and write the data of compiled models."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx import errors
from sardonyx.ir import Tensor
from sardonyx.session.context.data import (
    InitializerValue,
    OrtEpContextData,
    OrtEpContextDataBuffer,
    read_by,
    write_by,
)


def test_data_is_read_whole_or_in_parts() -> None:
    """Parts that are not there are an error."""
    data = OrtEpContextData(memoryview(b"0123456789"))
    assert data.size == 10
    assert (data.read(), data.read(4), data.read(2, 3)) == (b"0123456789", b"456789", b"234")
    for offset, length in ((11, None), (0, 11), (-1, 2), (4, -1)):
        with pytest.raises(errors.InvalidArgument, match="are asked for, but the data has 10"):
            data.read(offset, length)


def test_a_buffer_is_filled_in_parts() -> None:
    """What is not written is zero."""
    buffer = OrtEpContextDataBuffer(8)
    assert (buffer.is_allocated, buffer.size, buffer.max_size) == (False, 0, 8)
    buffer.allocate(6)
    buffer.write(b"ab")
    buffer.write(memoryview(b"cd"), 3)
    assert (buffer.is_allocated, buffer.size, bytes(buffer.content())) == (True, 6, b"ab\0cd\0")


def test_a_buffer_takes_no_more_than_it_has() -> None:
    """It is allocated once, within its bound."""
    buffer = OrtEpContextDataBuffer(8)
    with pytest.raises(errors.InvalidArgument, match="nothing is allocated"):
        buffer.write(b"a")
    with pytest.raises(errors.InvalidArgument, match="9 bytes are to be allocated, but max_data_size allows 0 to 8"):
        buffer.allocate(9)
    buffer.allocate(4)
    with pytest.raises(errors.InvalidArgument, match="4 bytes are allocated already"):
        buffer.allocate(4)
    for data, offset in ((b"abcde", 0), (b"ab", 3), (b"a", -1)):
        with pytest.raises(errors.InvalidArgument, match="do not fit into the 4"):
            buffer.write(data, offset)


def test_a_callback_that_fails_is_named_with_what_it_was_to_read() -> None:
    """Also one that forgets to allocate."""

    def fail(name: str, buffer: OrtEpContextDataBuffer) -> None:
        raise OSError("no disk")

    with pytest.raises(errors.Fail, match="read callback failed for 'a.bin': OSError: no disk"):
        read_by(fail, 8, "a.bin")
    with pytest.raises(errors.Fail, match=r"read callback failed for 'a.bin': .* without having called allocate"):
        read_by(lambda name, buffer: None, 8, "a.bin")


def test_a_callback_that_writes_gets_name_and_data() -> None:
    """Its failure is an error that says so."""
    found: dict[str, bytes] = {}
    write_by(lambda name, data: found.update({name: data.read()}), "a.bin", memoryview(b"content"))
    assert found == {"a.bin": b"content"}

    def fail(name: str, data: OrtEpContextData) -> None:
        raise KeyError(name)

    with pytest.raises(errors.Fail, match="write callback failed for 'a.bin': KeyError"):
        write_by(fail, "a.bin", memoryview(b""))


def test_an_initializer_shows_what_it_is() -> None:
    """With the names of onnxruntime's values."""
    value = InitializerValue(Tensor.from_array(np.ones((2, 3), np.float16)))
    assert (value.shape(), value.data_type(), value.element_type()) == ([2, 3], "tensor(float16)", 10)
    assert value.tensor_size_in_bytes() == 12
    assert value.numpy().tolist() == [[1, 1, 1], [1, 1, 1]]
