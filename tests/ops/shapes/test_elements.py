"""Facts about known elements and the arithmetic on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.infer_op import A, B, ints, scalar

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim
from sardonyx.ir.shape import is_anonymous, minimum
from sardonyx.ops.fact import Fact, known, tensor
from sardonyx.ops.shapes.elements import MAX_WEIGHT, dims_of, elementwise, from_dims, int_of, ints_of, light, select

INT64, BOOL, FLOAT = DataType.INT64, DataType.BOOL, DataType.FLOAT


def computed(op_type: str, *inputs: Fact, dtype: DataType = INT64) -> list[Any] | None:
    value = elementwise(op_type, inputs, dtype)
    return None if value is None else value.ravel().tolist()


def test_reading_as_dimensions() -> None:
    """Only integer tensors are read as dimensions, and only fully known ones as integers."""
    assert dims_of(ints(1, A, None)) == [1, A, None]
    assert dims_of(known(FLOAT, np.ones(2, np.float32))) is None
    assert dims_of(None) is None
    assert ints_of(ints(1, 2)) == (1, 2)
    assert ints_of(ints(1, A)) is None
    assert int_of(scalar(7)) == 7
    assert int_of(ints(7, 8)) is None


def test_making_from_dimensions() -> None:
    """Integers make an array of the tensor's dtype, symbols one of objects."""
    assert from_dims([2, 3]).dtype == np.int64
    assert from_dims([2, A]).tolist() == [2, A]


@pytest.mark.parametrize(
    ("op_type", "left", "right", "expected"),
    [
        ("Add", ints(A, 2), ints(B, 3), [A + B, 5]),
        ("Sub", ints(A, 2), ints(A, None), [0, None]),
        ("Mul", ints(A), ints(2, 3), [2 * A, 3 * A]),
        ("Div", ints(6 * A, A), ints(3, 2), [2 * A, A // 2]),
        ("Div", ints(A), ints(0), [None]),
        ("Div", ints(-7, A - 1), ints(2, 2), [-3, None]),
        ("Mod", ints(2 * A, A), ints(2, 3), [0, A % 3]),
        ("Max", ints(A, A), ints(-1, A + 1), [A, A + 1]),
        ("Min", ints(A, A), ints(B, 0), [minimum(A, B), 0]),
        ("Equal", ints(A, A, A), ints(A, -1, 3), [True, False, None]),
        ("Less", ints(A, A, A), ints(A + 1, A, 5), [True, False, None]),
        ("Greater", ints(A + 1, A), ints(A, 5), [True, None]),
        ("GreaterOrEqual", ints(A, A), ints(A, A + 1), [True, False]),
        ("LessOrEqual", ints(A, A), ints(A, A - 1), [True, False]),
    ],
)
def test_symbolic_arithmetic(op_type: str, left: Fact, right: Fact, expected: list[Any]) -> None:
    """Integers and symbols are computed alike, and what cannot be told is None."""
    assert computed(op_type, left, right, dtype=BOOL if expected[0] in (True, False) else INT64) == expected


def test_integer_division_truncates() -> None:
    """Div of known integers rounds toward zero, as the operator does."""
    assert computed("Div", ints(-7, 7, -6), ints(2, -2, 3)) == [-3, -3, -2]


def test_three_valued_logic() -> None:
    """An unknown truth value stays unknown only where it matters."""
    flags = known(BOOL, np.array([None, None, True], object))
    known_flags = known(BOOL, np.array([False, True, True]))
    assert computed("And", flags, known_flags, dtype=BOOL) == [False, None, True]
    assert computed("Or", flags, known_flags, dtype=BOOL) == [None, True, True]
    assert computed("Not", flags, dtype=BOOL) == [None, None, False]


def test_absolute_and_negative() -> None:
    """Neg and Abs know the sign of a size."""
    assert computed("Neg", ints(A)) == [-A]
    assert computed("Abs", ints(A, -A, A - B)) == [A, A, None]


def test_float_tensor_of_symbols_stays_with_integers() -> None:
    """In a float tensor a symbol times 2.0 is known, and divided by 0.5 it is not."""
    sizes = Fact(tensor(FLOAT, (1,)).type, from_dims([A]))
    assert computed("Mul", sizes, known(FLOAT, np.array([2.0], np.float32)), dtype=FLOAT) == [2 * A]
    assert computed("Mul", sizes, known(FLOAT, np.array([0.5], np.float32)), dtype=FLOAT) == [None]
    assert computed("Div", sizes, known(FLOAT, np.array([2.0], np.float32)), dtype=FLOAT) == [None]
    assert computed("Floor", sizes, dtype=FLOAT) == [A]


def test_known_floats_are_computed_in_their_own_type() -> None:
    """Elements that are all known round as the kernel does."""
    third = known(FLOAT, np.array([1 / 3], np.float32))
    assert elementwise("Mul", (third, third), FLOAT) == np.float32(1 / 3) * np.float32(1 / 3)


def test_operator_without_table_is_unknown() -> None:
    """An operator that no table knows says nothing, nor does one with an unknown input."""
    assert computed("Cos", ints(1)) is None
    assert computed("Add", ints(1), tensor(INT64, (1,))) is None


def test_selection() -> None:
    """Where picks by a known condition, and an unknown one does not matter between equals."""
    condition = np.array([True, None, None], object)
    found = select(condition, np.array([A, 2, 3], object), np.array([0, 2, 4], object))
    assert found is not None
    assert found.tolist() == [A, 2, None]


def test_heavy_expressions_become_unknown() -> None:
    """An expression beyond the limit is given up."""
    heavy: Dim = A
    for _ in range(MAX_WEIGHT):
        heavy = heavy * A
    assert is_anonymous(light(heavy))
    assert light(A) == A
    assert light(3) == 3
