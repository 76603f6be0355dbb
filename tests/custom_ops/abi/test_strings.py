"""Texts across the border."""

from __future__ import annotations

import ctypes

import pytest

from sardonyx.custom_ops.abi.strings import address_of, bytes_of, copy_text, read_text, text_of, write_int32, write_pointer
from sardonyx.errors import InvalidArgument


def test_texts_are_utf8() -> None:
    """Bytes that are none survive both ways."""
    assert bytes_of("ü") == b"\xc3\xbc"
    assert bytes_of(text_of(b"\xff\xc3\xbc")) == b"\xff\xc3\xbc"


def test_a_text_is_given_in_two_calls() -> None:
    """First its size with the zero byte, then the text."""
    size = ctypes.c_size_t(0)
    copy_text("abc", None, ctypes.addressof(size))
    assert size.value == 4
    buffer = ctypes.create_string_buffer(4)
    copy_text("abc", ctypes.addressof(buffer), ctypes.addressof(size))
    assert buffer.value == b"abc"


def test_a_small_buffer_is_refused_with_the_size_that_is_needed() -> None:
    """Nothing is written to it."""
    size, buffer = ctypes.c_size_t(2), ctypes.create_string_buffer(b"zz", 3)
    with pytest.raises(InvalidArgument, match="2 bytes is too small for a text of 4"):
        copy_text("abc", ctypes.addressof(buffer), ctypes.addressof(size))
    assert (size.value, buffer.value) == (4, b"zz")


def test_null_is_refused() -> None:
    """Where a text or a result is expected."""
    for refused in (
        lambda: read_text(None),
        lambda: write_pointer(None, 1),
        lambda: write_int32(0, 1),
        lambda: copy_text("", None, None),
    ):
        with pytest.raises(InvalidArgument, match="NULL"):
            refused()


def test_bytes_have_an_address() -> None:
    """A library reads them up to the zero byte."""
    content = b"abc\0"
    assert ctypes.string_at(address_of(content)) == b"abc"
