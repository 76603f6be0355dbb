"""Facts about kinds of quantization."""

from __future__ import annotations

import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.quantization.kinds import QuantType, integers_of


def test_integers_have_numbers() -> None:
    """Those of onnx.TensorProto."""
    assert [integers_of(int(kind)) for kind in (DataType.INT4, DataType.INT32)] == [DataType.INT4, DataType.INT32]


@pytest.mark.parametrize("number", [1, 16, 99])
def test_other_numbers_are_refused(number: int) -> None:
    """Floats, and what is no type."""
    with pytest.raises(InvalidArgument, match=f"got {number}"):
        integers_of(number)


def test_float8_is_a_type_of_codes_that_are_no_integers() -> None:
    """It has a number, and no limits."""
    assert QuantType.QFLOAT8E4M3FN.tensor_type == int(DataType.FLOAT8E4M3FN)
    assert QuantType.QFLOAT8E4M3FN.dtype is DataType.FLOAT8E4M3FN
    with pytest.raises(InvalidArgument, match="17"):
        integers_of(QuantType.QFLOAT8E4M3FN.tensor_type)
