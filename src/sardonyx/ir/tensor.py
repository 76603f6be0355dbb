"""Constant tensors: an element type, a shape, and data that is read when first asked for.

A tensor made from an array holds it. A tensor of a file holds a source that knows where its bytes are; `numpy()` asks the source
and keeps the array, until `release()` where the source can be asked again. The array is read-only.
"""

from __future__ import annotations

import abc
import math
import weakref
from collections.abc import Callable

import numpy as np

from sardonyx.dtypes import Array, DataType, bit_width

__all__ = ["KeptSource", "Tensor"]


class KeptSource(abc.ABC):
    """A source of elements that takes little memory and can be asked again: it gives the same array while somebody holds that."""

    __slots__ = ()

    @abc.abstractmethod
    def __call__(self) -> Array:
        """Return the elements."""

    def rows(self, start: int, stop: int) -> Array:
        """Return the elements [start, stop) along the first dimension, without the others."""
        return self()[start:stop]


class Tensor:
    """A constant tensor; immutable once made."""

    __slots__ = ("_array", "_source", "dtype", "name", "shape", "was_read")

    def __init__(self, dtype: DataType, shape: tuple[int, ...], source: Callable[[], Array], name: str = "") -> None:
        """Make a tensor whose array `source()` returns, with `dtype.numpy` elements and `shape`, when first needed."""
        self.dtype, self.shape, self.name = dtype, shape, name
        self._source: Callable[[], Array] | None = source
        self._array: Array | None = None
        self.was_read = False
        """Whether somebody has asked for elements, by which he may have decided something."""

    @staticmethod
    def from_array(array: object, name: str = "") -> Tensor:
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

    @staticmethod
    def widened(narrow: Tensor) -> Tensor:
        """Return the elements of `narrow` as float32: computed when they are read, and again after `release()`."""
        return Tensor(DataType.FLOAT, narrow.shape, _Widened(narrow), narrow.name)

    @property
    def narrow(self) -> Tensor | None:
        """The tensor of a shorter type that has the same numbers, where this one was made of it."""
        return self._source.narrow if isinstance(self._source, _Widened) else None

    @property
    def size(self) -> int:
        """How many elements it has."""
        return math.prod(self.shape)

    @property
    def size_bytes(self) -> int:
        """Bytes that the elements take in a file; strings count as 0."""
        return 0 if self.dtype is DataType.STRING else (self.size * bit_width(self.dtype) + 7) // 8

    def numpy(self) -> Array:
        """Return the elements, read-only; raises InvalidGraph or NoSuchFile where the source finds its bytes missing or wrong."""
        array = self._array
        if array is None:
            source = self._source
            if source is None:  # another thread has just stored the array
                return self.numpy()
            array = source()
            array.flags.writeable = False
            self._array, self.was_read = array, True
            if not isinstance(source, KeptSource):
                self._source = None
        return array

    def rows(self, start: int, stop: int) -> Array:
        """Return the elements [start, stop) along the first dimension, read alone where the others are in a file and not needed."""
        if self._array is None and isinstance(self._source, KeptSource):
            self.was_read = True
            return self._source.rows(start, stop)
        return self.numpy()[start:stop]

    def release(self) -> None:
        """Let go of elements that are in a file: they leave memory, where nobody else holds them, until they are read again."""
        if isinstance(self._source, KeptSource):
            self._array = None

    def detach(self) -> None:
        """Read elements that are still in a file, now and for good: the file may then change or go."""
        self._array = self.numpy()
        self._source = None

    def __repr__(self) -> str:
        dims = ", ".join(map(str, self.shape))
        return f"Tensor({self.dtype}[{dims}]{f' {self.name}' if self.name else ''})"


class _Widened(KeptSource):
    """The elements of a narrow tensor in float32; neither is kept."""

    __slots__ = ("_array", "narrow")

    def __init__(self, narrow: Tensor) -> None:
        self.narrow = narrow
        self._array: Callable[[], Array | None] = _nothing

    def __call__(self) -> Array:
        array = self._array()
        if array is None:
            array = self.narrow.numpy().astype(np.float32)
            self.narrow.release()
            self._array = weakref.ref(array)
        return array

    def rows(self, start: int, stop: int) -> Array:
        """Return the elements [start, stop) along the first dimension, widened alone."""
        return self.narrow.rows(start, stop).astype(np.float32)


def _nothing() -> None:
    """Stand for an array that is gone."""
