"""What lowerings read from nodes."""

import numpy as np
import pytest
from support.models import graph

from sardonyx.codegen.emit.types import I16, I32, I64
from sardonyx.dtypes import DataType
from sardonyx.ir import TensorType, Value
from sardonyx.ir.shape import symbol
from sardonyx.providers.cpu.operands import constant_of, given, index_type, moved_as, open_or_wrong, shape_of


def test_elements_of_constants_are_known() -> None:
    """What is computed or left out has none."""
    (node,) = graph("graph(x: float[N]) -> (y) { a: int64[1] = [1] y = Unsqueeze(x, a) }")
    np.testing.assert_array_equal(constant_of(node.inputs[1]), [1])
    assert constant_of(node.inputs[0]) is constant_of(None) is None


def test_elements_that_are_no_bytes_are_not_moved() -> None:
    """Strings are objects; all else is moved by its size."""
    nodes = list(graph("graph(x: string[2], z: bfloat16[2]) -> (y, w) { y: string[2] = Identity(x) w: bfloat16[2] = Identity(z) }"))
    assert [moved_as(node) for node in nodes] == ["elements of type string", I16]


def test_elements_that_change_their_type_are_not_moved() -> None:
    """A file may say so of an operator that keeps it."""
    (node,) = graph("graph(x: float[2]) -> (y: double[2]) { y: double[2] = Identity(x) }")
    assert moved_as(node) == "elements of type float become others of type double"


def test_indices_are_of_two_types() -> None:
    """int32 and int64; others are declined by name."""
    types = [index_type(Value("i", TensorType(dtype, (2,)))) for dtype in (DataType.INT32, DataType.INT64, DataType.INT8)]
    assert types == [I32, I64, "indices of type int8"]


def test_values_that_no_claim_is_asked_about_are_an_error() -> None:
    """Inputs that are left out, and unknown ranks."""
    with pytest.raises(ValueError, match="may be left out"):
        given(None)
    with pytest.raises(ValueError, match="rank of"):
        shape_of(Value("v", TensorType(DataType.FLOAT)))


def test_a_reason_says_whether_it_is_known() -> None:
    """Sizes that are symbols may still turn out right."""
    assert open_or_wrong((2, symbol("n")), None) == "depends on sizes"
    assert open_or_wrong((2, 3), (4,)) == "is not so"
