"""Texts across the border: UTF-8 in memory of the library's, by the protocols that the C interface has for them."""

from __future__ import annotations

import ctypes

from sardonyx.errors import InvalidArgument

__all__ = ["address_of", "bytes_of", "copy_text", "read_text", "text_of", "write_int32", "write_pointer", "write_size"]


def bytes_of(text: object) -> bytes:
    """Return a text in UTF-8; bytes that were no UTF-8 when they were read come out as they were."""
    return text if isinstance(text, bytes) else str(text).encode("utf-8", "surrogateescape")


def address_of(content: bytes) -> int:
    """Return the address of bytes, valid while they live; they end with a zero byte."""
    return ctypes.cast(ctypes.c_char_p(content), ctypes.c_void_p).value or 0


def text_of(content: bytes) -> str:
    """Return the text of UTF-8; bytes that are none survive by surrogateescape."""
    return content.decode("utf-8", "surrogateescape")


def read_text(address: int | None) -> str:
    """Return the text at an address, which ends with a zero byte; raises InvalidArgument for NULL."""
    if not address:
        raise InvalidArgument("the library gave NULL where a text is expected")
    return text_of(ctypes.string_at(address))


def copy_text(text: str, out: int | None, size: int | None) -> None:
    """Give a text by the protocol of two calls: without a buffer its size, with one the text, both with the zero byte.

    Args:
        text: what to give.
        out: the address of the buffer; NULL to ask for the size.
        size: the address of the buffer's size, which becomes the text's.

    Raises:
        InvalidArgument: the buffer is too small, or there is no address for the size.
    """
    if not size:
        raise InvalidArgument("the library gave NULL for the size of a text")
    content = bytes_of(text) + b"\0"
    given = ctypes.c_size_t.from_address(size)
    room, given.value = given.value, len(content)
    if not out:
        return
    if room < len(content):
        raise InvalidArgument(f"the buffer of {room} bytes is too small for a text of {len(content)}")
    ctypes.memmove(out, content, len(content))


def write_pointer(out: int | None, address: int) -> None:
    """Write an address, or a handle, where a library wants it; raises InvalidArgument for NULL."""
    if not out:
        raise InvalidArgument("the library gave NULL where a result is to be written")
    ctypes.c_uint64.from_address(out).value = address


def write_size(out: int | None, number: int) -> None:
    """Write a size_t or int64 where a library wants it; raises InvalidArgument for NULL."""
    write_pointer(out, number & 0xFFFFFFFFFFFFFFFF)


def write_int32(out: int | None, number: int) -> None:
    """Write an int, or an enumerator, where a library wants it; raises InvalidArgument for NULL."""
    if not out:
        raise InvalidArgument("the library gave NULL where a result is to be written")
    ctypes.c_int32.from_address(out).value = number
