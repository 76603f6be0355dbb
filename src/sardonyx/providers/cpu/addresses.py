"""Where an array's elements are, in a quarter of a microsecond instead of one: a run asks for each of its inputs and outputs."""

from __future__ import annotations

import ctypes

import numpy as np

from sardonyx.dtypes import Array

__all__ = ["address_of"]

_DATA_OFFSET = object.__basicsize__
"""`PyArrayObject_fields` begins with the object's header and the pointer `data`, which is part of NumPy's stable C interface."""

_MEMORY = (ctypes.c_int64 * (1 << 59)).from_address(0)
"""All addresses below 2**62, to read the words of objects; those are aligned, and begin above 2**47 on some processors."""


def _by_field(array: Array) -> int:
    return _MEMORY[(id(array) + _DATA_OFFSET) >> 3]


def _by_interface(array: Array) -> int:
    address: int = array.ctypes.data
    return address


def _fields_are_as_known() -> bool:
    """Return whether the interpreter lays objects out as CPython does; another one, or another build, takes the slower way."""
    samples = [np.arange(8.0), np.arange(8.0)[3:], np.zeros((2, 3), np.int8)]
    return all(_by_field(sample) == _by_interface(sample) for sample in samples)


address_of = _by_field if _fields_are_as_known() else _by_interface
"""The address of the first element of an array."""
