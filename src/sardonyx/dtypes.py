"""The element types of ONNX, under the numbers of TensorProto.DataType, and their NumPy counterparts.

    DataType.FLOAT.numpy          dtype('float32')
    DataType.from_numpy(array.dtype)
    str(DataType.BFLOAT16)        'bfloat16', the name that ONNX's type strings use: tensor(bfloat16)

Types that NumPy lacks (bfloat16, the float8s, float4, (u)int4, (u)int2) come from ml_dtypes, imported on first use. Sub-byte
types hold one element per byte in arrays; files pack them. Strings are object arrays of `str`.
"""

from __future__ import annotations

import enum
import functools
from typing import TYPE_CHECKING, Any, SupportsIndex, TypeAlias

import numpy as np

from sardonyx.forks import without_fork

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["Array", "DataType", "ElementType", "OnnxValue", "bit_width", "is_float", "is_integer", "is_signed"]

Array = np.ndarray[Any, np.dtype[Any]]
"""A NumPy array of any shape and type."""

ElementType: TypeAlias = "DTypeLike | SupportsIndex"
"""An element type as users give it: anything that np.dtype takes, or a number of TensorProto.DataType."""

OnnxValue: TypeAlias = Any
"""What flows along an edge in a run, by its ONNX type: an array, a list of values (sequence), a dict (map), None (optional that is
empty, output that is not made), or a tensor in a provider's memory, of the provider's own class."""


class DataType(enum.IntEnum):
    """An element type; the value is its number in TensorProto.DataType."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22
    FLOAT4E2M1 = 23
    FLOAT8E8M0 = 24
    UINT2 = 25
    INT2 = 26
    FLOAT6E2M3 = 27
    FLOAT6E3M2 = 28

    def __str__(self) -> str:
        """Return the name in ONNX type strings, such as `float` or `float8e4m3fn`."""
        return self.name.lower()

    @property
    def numpy(self) -> np.dtype[Any]:
        """The dtype of arrays that hold this type; raises KeyError for UNDEFINED."""
        native = _native_table()
        return native[self] if self in native else _extended_table()[self]

    @staticmethod
    def from_numpy(dtype: np.dtype[np.generic] | type) -> DataType:
        """Return the element type of arrays of `dtype`; raises KeyError where ONNX has none (a date, a record)."""
        found = np.dtype(dtype)
        if found.kind in "OUST":
            return DataType.STRING
        return _native_types().get(found) or _extended_types()[found]

    @staticmethod
    def parse(text: str) -> DataType:
        """Return the type named `text` as `str` prints it; raises KeyError for another name."""
        return DataType[text.upper()]


_NATIVE = {
    DataType.FLOAT: "float32",
    DataType.UINT8: "uint8",
    DataType.INT8: "int8",
    DataType.UINT16: "uint16",
    DataType.INT16: "int16",
    DataType.INT32: "int32",
    DataType.INT64: "int64",
    DataType.STRING: "O",
    DataType.BOOL: "bool",
    DataType.FLOAT16: "float16",
    DataType.DOUBLE: "float64",
    DataType.UINT32: "uint32",
    DataType.UINT64: "uint64",
    DataType.COMPLEX64: "complex64",
    DataType.COMPLEX128: "complex128",
}

_ML_DTYPES = {
    DataType.BFLOAT16: "bfloat16",
    DataType.FLOAT8E4M3FN: "float8_e4m3fn",
    DataType.FLOAT8E4M3FNUZ: "float8_e4m3fnuz",
    DataType.FLOAT8E5M2: "float8_e5m2",
    DataType.FLOAT8E5M2FNUZ: "float8_e5m2fnuz",
    DataType.UINT4: "uint4",
    DataType.INT4: "int4",
    DataType.FLOAT4E2M1: "float4_e2m1fn",
    DataType.FLOAT8E8M0: "float8_e8m0fnu",
    DataType.UINT2: "uint2",
    DataType.INT2: "int2",
    DataType.FLOAT6E2M3: "float6_e2m3fn",
    DataType.FLOAT6E3M2: "float6_e3m2fn",
}

_BITS = {
    DataType.UINT4: 4,
    DataType.INT4: 4,
    DataType.FLOAT4E2M1: 4,
    DataType.UINT2: 2,
    DataType.INT2: 2,
    DataType.FLOAT6E2M3: 6,
    DataType.FLOAT6E3M2: 6,
    DataType.BFLOAT16: 16,
    DataType.FLOAT8E4M3FN: 8,
    DataType.FLOAT8E4M3FNUZ: 8,
    DataType.FLOAT8E5M2: 8,
    DataType.FLOAT8E5M2FNUZ: 8,
    DataType.FLOAT8E8M0: 8,
}
"""Of types that NumPy lacks, so that their sizes are known without ml_dtypes."""


@functools.cache
def _native_table() -> dict[DataType, np.dtype[Any]]:
    return {key: np.dtype(name) for key, name in _NATIVE.items()}


@functools.cache
def _extended_table() -> dict[DataType, np.dtype[Any]]:
    with without_fork():
        import ml_dtypes

    return {key: np.dtype(getattr(ml_dtypes, name)) for key, name in _ML_DTYPES.items()}


@functools.cache
def _native_types() -> dict[np.dtype[np.generic], DataType]:
    return {dtype: key for key, dtype in _native_table().items()}


@functools.cache
def _extended_types() -> dict[np.dtype[np.generic], DataType]:
    return {dtype: key for key, dtype in _extended_table().items()}


def bit_width(dtype: DataType) -> int:
    """Return bits that one element takes in a file: 4 for int4, 32 for float; raises KeyError for STRING and UNDEFINED."""
    if dtype is DataType.STRING:
        raise KeyError(dtype)
    return _BITS.get(dtype) or 8 * dtype.numpy.itemsize


_FLOATS = {
    DataType.FLOAT,
    DataType.FLOAT16,
    DataType.DOUBLE,
    DataType.BFLOAT16,
    DataType.FLOAT8E4M3FN,
    DataType.FLOAT8E4M3FNUZ,
    DataType.FLOAT8E5M2,
    DataType.FLOAT8E5M2FNUZ,
    DataType.FLOAT4E2M1,
    DataType.FLOAT8E8M0,
    DataType.FLOAT6E2M3,
    DataType.FLOAT6E3M2,
}
_SIGNED = {DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64, DataType.INT4, DataType.INT2}
_UNSIGNED = {DataType.UINT8, DataType.UINT16, DataType.UINT32, DataType.UINT64, DataType.UINT4, DataType.UINT2}


def is_float(dtype: DataType) -> bool:
    """Return whether `dtype` is a real floating-point type of any width."""
    return dtype in _FLOATS


def is_integer(dtype: DataType) -> bool:
    """Return whether `dtype` is a signed or unsigned integer; bool is not."""
    return dtype in _SIGNED or dtype in _UNSIGNED


def is_signed(dtype: DataType) -> bool:
    """Return whether `dtype` is a signed integer."""
    return dtype in _SIGNED
