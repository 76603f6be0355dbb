"""Facts about element types as attributes name them."""

import pytest

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.element_types import element_type


def test_numbers_name_types():
    """1 is float, 16 is bfloat16."""
    assert element_type(1, "to") is DataType.FLOAT
    assert element_type(16, "to") is DataType.BFLOAT16


@pytest.mark.parametrize("number", [0, 99, -1])
def test_other_numbers_are_refused(number):
    """The undefined type and unknown numbers are refused under the attribute's name."""
    with pytest.raises(InvalidArgument, match=f"dtype={number}"):
        element_type(number, "dtype")
