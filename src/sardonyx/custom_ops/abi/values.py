"""Tensors and their types as libraries hold them: OrtValue, OrtTensorTypeAndShapeInfo and OrtTypeInfo.

The three are one block of words, so that native functions answer from memory alone:

    data | element type | rank | element count | address of the dimensions | owned | present | fallbacks | dimensions ...

`owned` is 0 for the inputs and outputs of a kernel's call, which live in its frame, and 1 for what a library made or asked for and
releases. Python's side of a block, a `HostValue`, is found by its address.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from sardonyx.custom_ops.abi.c_memory import fallback_table
from sardonyx.custom_ops.abi.strings import bytes_of
from sardonyx.dtypes import Array, DataType, OnnxValue, bit_width
from sardonyx.errors import InvalidArgument
from sardonyx.errors import NotImplemented as NotSupported
from sardonyx.providers.cpu.addresses import address_of

__all__ = [
    "HEAD_WORDS",
    "INLINE_RANK",
    "SLOT_WORDS",
    "HostValue",
    "blank_value",
    "find_value",
    "make_container",
    "make_info",
    "make_value",
    "new_array",
    "release_value",
]

HEAD_WORDS, INLINE_RANK = 8, 8
SLOT_WORDS = HEAD_WORDS + INLINE_RANK
DATA, TYPE, RANK, COUNT, DIMS, OWNED, PRESENT, FALLBACKS = range(HEAD_WORDS)
"""The words of a block."""

_VALUES: dict[int, HostValue] = {}


class HostValue:
    """Python's side of a block of words."""

    __slots__ = ("address", "array", "container", "dims", "dtype", "encoded", "has_shape", "keeps", "shape", "symbols", "words")

    def __init__(self, words: Any, *, owned: bool) -> None:
        """Take over `words`, SLOT_WORDS of c_int64 (Any: ctypes arrays have no common class), and make its address known."""
        self.words = words
        self.address = ctypes.addressof(words)
        self.array: Array | None = None
        self.container: OnnxValue = None
        """The elements of a sequence or a map, which has no array."""
        self.dtype = DataType.UNDEFINED
        self.shape: tuple[int, ...] = ()
        self.symbols: tuple[str, ...] = ()
        """The names of unknown dimensions, "" for none."""
        self.encoded: list[bytes] | None = None
        self.dims: object = None
        self.has_shape = True
        """Whether its number of dimensions is known, of a type."""
        self.keeps: object = None
        words[DIMS], words[OWNED], words[FALLBACKS] = self.address + 8 * HEAD_WORDS, int(owned), fallback_table()
        _VALUES[self.address] = self

    @property
    def content(self) -> OnnxValue:
        """The array, list or dict that it holds; None for nothing."""
        return self.array if self.container is None else self.container

    def forget(self) -> None:
        """Make the address unknown."""
        _VALUES.pop(self.address, None)

    def clear(self) -> None:
        """Be no value: an input that is left out, or an output before it is asked for."""
        self.array = self.encoded = None
        self.words[PRESENT] = self.words[DATA] = 0

    def set_type(self, dtype: DataType, shape: Sequence[int]) -> None:
        """Have this element type and these dimensions, -1 for an unknown one."""
        self.dtype, self.shape = dtype, tuple(shape)
        words = self.words
        words[TYPE], words[RANK] = int(dtype), len(self.shape)
        words[COUNT] = math.prod(self.shape) if all(size >= 0 for size in self.shape) else -1
        if len(self.shape) <= INLINE_RANK:
            words[DIMS] = self.address + 8 * HEAD_WORDS
            words[HEAD_WORDS : HEAD_WORDS + len(self.shape)] = self.shape
        else:
            self.dims = (ctypes.c_int64 * len(self.shape))(*self.shape)
            words[DIMS] = ctypes.addressof(self.dims)

    def set_array(self, array: Array, dtype: DataType | None = None) -> None:
        """Hold the elements of a dense array, in place; strings are held as objects.

        Raises:
            NotImplemented: elements of less than a byte, which libraries expect packed.
        """
        dtype = _type_of(array.dtype) if dtype is None else dtype
        self.array, self.encoded = array, None
        if dtype is not self.dtype or array.shape != self.shape:
            if dtype is not DataType.STRING and bit_width(dtype) < 8:
                raise NotSupported(f"a tensor of {dtype} cannot be handed to a compiled library; insert a Cast")
            self.set_type(dtype, array.shape)
        words = self.words
        words[PRESENT] = 1
        words[DATA] = 0 if dtype is DataType.STRING else address_of(array)

    def texts(self) -> list[bytes]:
        """Return the elements of a tensor of strings in UTF-8; raises InvalidArgument where it is no such tensor."""
        if self.dtype is not DataType.STRING or self.array is None:
            raise InvalidArgument(f"the library asks for strings of a tensor of {self.dtype}")
        if self.encoded is None:
            self.encoded = [bytes_of(item) for item in self.array.ravel().tolist()]
        return self.encoded

    def writable_texts(self) -> Array:
        """Return the flat elements of a tensor of strings, to be written to; raises InvalidArgument for another tensor."""
        if self.dtype is not DataType.STRING or self.array is None:
            raise InvalidArgument(f"the library writes strings to a tensor of {self.dtype}")
        self.encoded = None
        return self.array.reshape(-1)


def find_value(address: int | None) -> HostValue:
    """Return the value, or type and shape, at an address that a library gave; raises InvalidArgument for another one."""
    found = _VALUES.get(address or 0)
    if found is None:
        raise InvalidArgument(f"the library gave {'NULL' if not address else hex(address)} where a value or its type is expected")
    return found


def make_value(array: Array, dtype: DataType | None = None) -> HostValue:
    """Return a new value that the library releases, on the elements of `array`."""
    value = HostValue((ctypes.c_int64 * SLOT_WORDS)(), owned=True)
    try:
        value.set_array(array, dtype)
    except BaseException:
        value.forget()
        raise
    return value


def make_container(content: OnnxValue) -> HostValue:
    """Return a new value that the library releases: a list or a dict, which no function for tensors reads."""
    value = HostValue((ctypes.c_int64 * SLOT_WORDS)(), owned=True)
    value.container = content
    return value


def make_info(dtype: DataType, shape: Sequence[int], symbols: Sequence[str] = ()) -> HostValue:
    """Return a new type and shape that the library releases; -1 is an unknown dimension, which may have a symbol."""
    info = HostValue((ctypes.c_int64 * SLOT_WORDS)(), owned=True)
    info.set_type(dtype, shape)
    info.symbols = tuple(symbols) or ("",) * len(info.shape)
    return info


def release_value(address: int | None) -> None:
    """Release what `make_value` or `make_info` returned; another address is passed over."""
    found = _VALUES.get(address or 0)
    if found is not None and found.words[OWNED]:
        found.forget()


def blank_value() -> HostValue:
    """Return a value of a kernel's call without elements yet."""
    return HostValue((ctypes.c_int64 * SLOT_WORDS)(), owned=False)


@functools.lru_cache(maxsize=64)
def _type_of(dtype: np.dtype[np.generic]) -> DataType:
    return DataType.from_numpy(dtype)


def new_array(dtype: DataType, shape: Sequence[int]) -> Array:
    """Return an array for a library to write: strings are empty texts; raises InvalidArgument for a negative size."""
    if any(size < 0 for size in shape):
        raise InvalidArgument(f"the library asks for a tensor of shape {list(shape)}")
    if dtype is DataType.STRING:
        return np.full(tuple(shape), "", dtype=object)
    return np.empty(tuple(shape), dtype.numpy)
