"""Elements of tensors that lie in a file, read when they are asked for."""

from __future__ import annotations

import functools
import math
import weakref
from collections.abc import Callable
from typing import Any

from sardonyx.dtypes import Array, DataType, bit_width
from sardonyx.formats.elements import unpack
from sardonyx.formats.files import Content, MemoryContent
from sardonyx.ir.tensor import KeptSource

__all__ = ["stored"]


def stored(content: Content, offset: int, size_bytes: int, dtype: DataType, shape: tuple[int, ...]) -> Callable[[], Array]:
    """Return what reads a tensor whose elements are the `size_bytes` bytes of `content` from `offset` on."""
    if not isinstance(content, MemoryContent):
        return _Stored(content, offset, size_bytes, dtype, shape)
    if content.is_copy:
        return functools.partial(_copied, content, offset, size_bytes, dtype, shape)
    return functools.partial(unpack, content.read(offset, size_bytes), dtype, shape)


class _Stored(KeptSource):
    """Elements in a file. What was read is given again as long as somebody holds an array of it: weights are in memory once."""

    __slots__ = ("_buffer", "_content", "_dtype", "_offset", "_shape", "_size_bytes")

    def __init__(self, content: Content, offset: int, size_bytes: int, dtype: DataType, shape: tuple[int, ...]) -> None:
        self._content, self._offset, self._size_bytes, self._dtype, self._shape = content, offset, size_bytes, dtype, shape
        self._buffer: Callable[[], Any] = _nothing

    def __call__(self) -> Array:
        buffer = self._buffer()
        if buffer is None:
            buffer = self._content.read(self._offset, self._size_bytes).obj
            self._buffer = weakref.ref(buffer)
        return unpack(memoryview(buffer).toreadonly(), self._dtype, self._shape)

    def rows(self, start: int, stop: int) -> Array:
        row_bits = math.prod(self._shape[1:]) * bit_width(self._dtype)
        if row_bits % 8 or self._buffer() is not None:
            return self()[start:stop]
        data = self._content.read(self._offset + start * row_bits // 8, (stop - start) * row_bits // 8)
        return unpack(data, self._dtype, (stop - start, *self._shape[1:]))


def _nothing() -> None:
    """Stand for a buffer that is gone."""


def _copied(content: MemoryContent, offset: int, size_bytes: int, dtype: DataType, shape: tuple[int, ...]) -> Array:
    """Return elements that do not keep the file's other bytes in memory."""
    return unpack(bytes(content.read(offset, size_bytes)), dtype, shape)
