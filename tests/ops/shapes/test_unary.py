"""Facts about element-wise operators of one input."""

from __future__ import annotations

from support.infer_op import A, dtype_of, floats, infer_op, infer_shape, ints

from sardonyx.dtypes import DataType


def test_shape_and_type_are_kept() -> None:
    """The output of Exp is as the input."""
    assert infer_shape("Exp", floats(A, 3)) == (A, 3)
    assert dtype_of("Exp", floats(A)) is DataType.FLOAT


def test_known_elements_are_computed() -> None:
    """Neg of a known vector is known."""
    assert infer_op("Neg", ints(1, A))[0].elements == [-1, -A]


def test_predicates_give_bool() -> None:
    """IsNaN gives a bool for each element."""
    assert dtype_of("IsNaN", floats(A)) is DataType.BOOL
    assert infer_shape("IsInf", floats(A, 2)) == (A, 2)
