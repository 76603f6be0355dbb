"""Facts about Softmax and its kin."""

from __future__ import annotations

import pytest
from support.infer_op import A, error_of, floats, infer_shape


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax", "Hardmax"])
@pytest.mark.parametrize("version", [1, 11, 13])
def test_shape_is_kept(op_type: str, version: int) -> None:
    """Normalizing changes no shape."""
    assert infer_shape(op_type, floats(A, 3), version=version) == (A, 3)


def test_axis_is_checked_since_13() -> None:
    """An axis that the input lacks is refused."""
    assert "axis=2 is outside" in error_of("Softmax", floats(A, 3), axis=2)
