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


def test_quantization_to_float8_is_refused() -> None:
    """The type has a number, but no grid."""
    assert QuantType.QFLOAT8E4M3FN.tensor_type == int(DataType.FLOAT8E4M3FN)
    with pytest.raises(InvalidArgument, match="float8"):
        _ = QuantType.QFLOAT8E4M3FN.dtype
