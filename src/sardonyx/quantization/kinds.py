"""The kinds of quantization: formats, ways to calibrate, and types of quantized numbers."""

from __future__ import annotations

import enum
from collections.abc import Mapping

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument

__all__ = [
    "LIMITS",
    "CalibrationMethod",
    "QuantFormat",
    "QuantType",
    "QuantizationMode",
    "integers_of",
    "limits_of",
]


class QuantizationMode(enum.Enum):
    """Whether activations are quantized in each run, or by scales found beforehand."""

    IntegerOps = 0
    QLinearOps = 1


class QuantFormat(enum.Enum):
    """How a quantized model is written: with quantized operators, or float operators between Q and DQ."""

    QOperator = 0
    QDQ = 1

    def __str__(self) -> str:
        return self.name


class CalibrationMethod(enum.Enum):
    """How the range of a tensor follows from its values."""

    MinMax = 0
    Entropy = 1
    Percentile = 2
    Distribution = 3


class QuantType(enum.Enum):
    """The type of quantized numbers."""

    QInt8 = 0
    QUInt8 = 1
    QFLOAT8E4M3FN = 2
    QInt16 = 3
    QUInt16 = 4
    QInt4 = 5
    QUInt4 = 6

    def __str__(self) -> str:
        return self.name

    @staticmethod
    def from_string(text: str) -> QuantType:
        """Return the type of a name; raises InvalidArgument for another text."""
        if text not in QuantType.__members__:
            raise InvalidArgument(f"a QuantType is one of {', '.join(QuantType.__members__)}, got {text!r}")
        return QuantType[text]

    @property
    def tensor_type(self) -> int:
        """The number of the element type, as in onnx.TensorProto."""
        return int(_DTYPES[self])

    @property
    def dtype(self) -> DataType:
        """The element type."""
        return _DTYPES[self]


_DTYPES: Mapping[QuantType, DataType] = {
    QuantType.QInt8: DataType.INT8,
    QuantType.QUInt8: DataType.UINT8,
    QuantType.QFLOAT8E4M3FN: DataType.FLOAT8E4M3FN,
    QuantType.QInt16: DataType.INT16,
    QuantType.QUInt16: DataType.UINT16,
    QuantType.QInt4: DataType.INT4,
    QuantType.QUInt4: DataType.UINT4,
}
LIMITS: Mapping[DataType, tuple[int, int]] = {
    DataType.INT4: (-8, 7),
    DataType.UINT4: (0, 15),
    DataType.INT8: (-128, 127),
    DataType.UINT8: (0, 255),
    DataType.INT16: (-32768, 32767),
    DataType.UINT16: (0, 65535),
    DataType.INT32: (-(1 << 31), (1 << 31) - 1),
}
"""Type of codes -> its least and its greatest number."""


def integers_of(number: int) -> DataType:
    """Return the type of integers with a number of onnx.TensorProto; raises InvalidArgument where codes cannot have it."""
    found = next((dtype for dtype in LIMITS if int(dtype) == number), None)
    if found is None:
        raise InvalidArgument(f"expected the number of a type of integers that codes may have, got {number!r}")
    return found


def limits_of(dtype: DataType, *, reduced: bool = False, symmetric: bool = False) -> tuple[int, int]:
    """Return the least and the greatest number of a type that a grid is laid out for.

    Args:
        dtype: a type of integers.
        reduced: whether a bit is left unused, so that sums of products fit accumulators of 16 bits.
        symmetric: whether the least is the negative of the greatest, for signed types of 8 bits and more.
    """
    low, high = LIMITS[dtype]
    if reduced:
        return (low // 2, (high + 1) // 2) if low and high > 7 else (low // 2, high // 2)
    return (-high, high) if symmetric and low and high > 7 else (low, high)
