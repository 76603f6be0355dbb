"""Results of the type of a value."""

from __future__ import annotations

import pytest

from sardonyx.dtypes import DataType
from sardonyx.ir import TensorType, Value
from sardonyx.optimize.helpers.result_type import changed_type_reason

HALVES = TensorType(DataType.FLOAT16, (2, 3))
FLOATS = TensorType(DataType.FLOAT, (2, 3))


def test_a_result_of_the_same_type_has_no_reason() -> None:
    """Nothing changed."""
    assert changed_type_reason(Value("x", FLOATS), Value("y", FLOATS)) is None


@pytest.mark.parametrize(
    ("value", "result"),
    [
        (FLOATS, HALVES),
        (FLOATS, TensorType(DataType.FLOAT, (3, 2))),
        (TensorType(DataType.FLOAT, None), TensorType(DataType.FLOAT, None)),
    ],
)
def test_a_result_of_another_or_an_unknown_type_has_one(value: TensorType, result: TensorType) -> None:
    """It names both types."""
    reason = changed_type_reason(Value("x", value), Value("y", result))
    assert reason == f"the result is {result.dtype} {result.shape}, the value {value.dtype} {value.shape}"
