"""Facts about facts, and the registration of shape functions."""

from __future__ import annotations

import numpy as np
import pytest

from sardonyx.dtypes import DataType
from sardonyx.ir import SequenceType, TensorType, symbol
from sardonyx.ops.fact import (
    UNKNOWN,
    Fact,
    ShapeCall,
    dims_text,
    find_shape_function,
    known,
    registered_shape_functions,
    shape_function,
    tensor,
)

DOMAIN = "test.fact"
N = symbol("n")


def test_tensor_facts_tell_type_and_shape() -> None:
    """A tensor's fact has dtype, shape and rank; nothing is known without a type."""
    fact = tensor(DataType.FLOAT, (N, 3))
    assert (fact.dtype, fact.shape, fact.rank) == (DataType.FLOAT, (N, 3), 2)
    assert tensor(None, (1,)) is UNKNOWN
    assert tensor(DataType.FLOAT).rank is None


def test_other_types_have_no_shape() -> None:
    """A sequence has neither dtype nor shape."""
    fact = Fact(SequenceType(TensorType(DataType.FLOAT)))
    assert fact.dtype is None
    assert fact.shape is None


def test_elements_of_plain_numbers_get_the_tensors_dtype() -> None:
    """An array of objects that are all numbers is a constant."""
    fact = known(DataType.INT64, np.array([1, 2], object))
    assert fact.constant is not None
    assert fact.constant.dtype == np.int64


def test_symbolic_elements_are_no_constant() -> None:
    """One symbol among the elements makes it no constant, though the elements are known."""
    fact = known(DataType.INT64, np.array([N, 2], object))
    assert fact.constant is None
    assert fact.elements == [N, 2]


def test_unknown_elements_alone_are_dropped() -> None:
    """A value of which nothing is known is none."""
    assert known(DataType.INT64, np.array([None, None], object)).value is None


def test_strings_are_constants() -> None:
    """Strings are kept in arrays of objects and are constants all the same."""
    fact = known(DataType.STRING, np.array(["a"], object))
    assert fact.constant is not None


def test_versions_are_found_by_range() -> None:
    """A version finds the newest function not after it."""

    @shape_function("Versions", domain=DOMAIN)
    def first(call: ShapeCall, x: Fact) -> Fact:
        return x

    @shape_function("Versions", since=5, domain=DOMAIN)
    def second(call: ShapeCall, x: Fact, y: Fact | None = None, *others: Fact | None, axis: int = 0) -> Fact:
        return x

    old, new = find_shape_function(DOMAIN, "Versions", 4), find_shape_function(DOMAIN, "Versions", 99)
    assert old is not None
    assert new is not None
    assert (old.function, old.needed, old.most) == (first, 1, 1)
    assert (new.function, new.needed, new.attributes) == (second, 1, frozenset({"axis"}))
    assert find_shape_function(DOMAIN, "Versions", 0) is None
    assert (DOMAIN, "Versions") in registered_shape_functions()


def test_one_version_has_one_function() -> None:
    """A second function for the same version is refused; a definition that is executed again takes its own place."""

    @shape_function("Twice", domain=DOMAIN)
    def first(call: ShapeCall) -> Fact:
        return UNKNOWN

    with pytest.raises(ValueError, match=r"two shape functions for test\.fact\.Twice since 1"):
        shape_function("Twice", domain=DOMAIN)(lambda call: UNKNOWN)
    assert shape_function("Twice", domain=DOMAIN)(first) is first


def test_every_operator_of_the_standard_has_a_shape_function() -> None:
    """Each schema of each version finds a shape function."""
    import onnx.defs

    import sardonyx.ops.shapes  # noqa: F401  registers them

    for schema in onnx.defs.get_all_schemas_with_history():
        assert find_shape_function(schema.domain, schema.name, schema.since_version), schema.name


def test_text_of_shapes() -> None:
    """Shapes print as lists, an unknown one as a question mark."""
    assert dims_text((N, 3)) == "[n, 3]"
    assert dims_text(None) == "[?]"
