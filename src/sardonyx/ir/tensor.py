"""Constant tensors: an element type, a shape, and data that is read when first asked for.

A tensor made from an array holds it. A tensor of a file holds a source that knows where its bytes are; `numpy()` asks the source
once and keeps the array, which for raw and mapped data is a view of the file and copies nothing. The array is read-only.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np

from sardonyx.dtypes import Array, DataType, bit_width

__all__ = ["Tensor"]


class Tensor:
    """A constant tensor; immutable once made."""

    __slots__ = ("_array", "_source", "dtype", "name", "shape")

    def __init__(self, dtype: DataType, shape: tuple[int, ...], source: Callable[[], Array], name: str = "") -> None:
        """Make a tensor whose array `source()` returns, with `dtype.numpy` elements and `shape`, when first needed."""
        self.dtype, self.shape, self.name = dtype, shape, name
        self._source: Callable[[], Array] | None = source
        self._array: Array | None = None

    @staticmethod
    def from_array(array: Any, name: str = "") -> Tensor:
        """Make a tensor that holds `array` (or what NumPy makes of it); raises KeyError for a dtype that ONNX lacks."""
        data = np.asarray(array)
        dtype = DataType.from_numpy(data.dtype)
        data = data if data.dtype == dtype.numpy else data.astype(dtype.numpy)
        if data.flags.writeable:
            data = data.view()
            data.flags.writeable = False
        tensor = Tensor(dtype, data.shape, lambda: data, name)
        tensor._array = data
        return tensor

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes that the elements take in a file; strings count as 0."""
        return 0 if self.dtype is DataType.STRING else (self.size * bit_width(self.dtype) + 7) // 8

    def numpy(self) -> Array:
        """The elements, read-only; raises InvalidGraph or NoSuchFile where the source finds its bytes missing or wrong."""
        if self._array is None:
            source = self._source
            if source is None:  # another thread has just stored the array
                return self.numpy()
            array = source()
            array.flags.writeable = False
            self._array = array
            self._source = None
        return self._array

    def release(self) -> None:
        """Tell the system that the elements are not needed soon: pages of a mapped file leave memory until they are read again."""
        if self._array is not None and self._array.nbytes >= mmap.PAGESIZE:
            _give_back_pages(self._array)

    def __repr__(self) -> str:
        dims = ", ".join(map(str, self.shape))
        return f"Tensor({self.dtype}[{dims}]{f' {self.name}' if self.name else ''})"


def _give_back_pages(array: Array) -> None:
    base: Any = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    mapped = base.obj if isinstance(base, memoryview) else base
    if not isinstance(mapped, mmap.mmap) or not hasattr(mmap, "MADV_DONTNEED"):
        return
    start = array.ctypes.data - np.frombuffer(mapped, np.uint8).ctypes.data
    first = -(-start // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (start + array.nbytes) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if length > 0:
        mapped.madvise(mmap.MADV_DONTNEED, first, length)
