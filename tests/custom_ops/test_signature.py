"""Inputs and attributes by the names, kinds and defaults of a function's parameters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from sardonyx.custom_ops.definition import Arity
from sardonyx.custom_ops.signature import attribute_names, decode, read_attributes, read_inputs
from sardonyx.errors import InvalidArgument, InvalidGraph
from sardonyx.ir import Attribute, Tensor


def _function(x: Any, scale: Any, bias: Any = None, *rest: Any, axis: int = -1, mode: str = "fast") -> None:
    """An operator's function."""


def test_positional_parameters_are_inputs() -> None:
    """Without default required, with None optional, after a star any number."""
    assert [(item.name, item.arity) for item in read_inputs(_function)] == [
        ("x", Arity.REQUIRED),
        ("scale", Arity.REQUIRED),
        ("bias", Arity.OPTIONAL),
        ("rest", Arity.VARIADIC),
    ]


def test_keyword_only_parameters_are_attributes() -> None:
    """With their defaults."""
    assert read_attributes(_function) == {"axis": -1, "mode": "fast"}
    assert attribute_names(_function) == {"axis", "mode"}


def test_an_input_with_another_default_than_none_is_refused() -> None:
    """It would be neither an input nor an attribute."""

    def wrong(x: Any, axis: int = 1) -> None: ...

    with pytest.raises(InvalidArgument, match=r"the input 'axis' has the default 1.*an attribute stands after \*"):
        read_inputs(wrong)


def test_attributes_of_any_name_are_refused() -> None:
    """Nodes are checked against names."""

    def wrong(x: Any, **attributes: Any) -> None: ...

    with pytest.raises(InvalidArgument, match=r"\*\*attributes cannot be attributes"):
        read_inputs(wrong)


def test_a_default_that_no_attribute_has_is_refused() -> None:
    """A set is none."""

    def wrong(x: Any, *, axes: Any = frozenset()) -> None: ...

    with pytest.raises(InvalidArgument, match="the attribute 'axes' has the default frozenset"):
        read_attributes(wrong)


@pytest.mark.parametrize(
    ("value", "default", "expected"),
    [
        (3, 1, 3),
        (3, 1.0, 3.0),
        (2.5, 1.0, 2.5),
        (1, False, True),
        ("a", "b", "a"),
        ((1, 2), (0,), (1, 2)),
        ((1, 2), (0.5,), (1.0, 2.0)),
        ((1, 2), (), (1, 2)),
        ("a", None, "a"),
    ],
)
def test_an_attribute_comes_in_the_kind_of_its_default(value: Any, default: Any, expected: Any) -> None:
    """An int may stand for a float or a bool."""
    found = decode({"a": Attribute.of(value)}, {"a": default})["a"]
    assert (found, type(found)) == (expected, type(expected))


def test_a_tensor_comes_as_an_array() -> None:
    """Its elements and its type stay."""
    given = {"a": Attribute.of(Tensor.from_array(np.int8([1, 2])))}
    for default in (None, np.zeros(1)):
        assert decode(given, {"a": default})["a"].dtype == np.int8


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"axis": 1.5}, "its attribute 'axis' is 1.5; expected int, as the default -1 is"),
        ({"axis": (1, 2)}, r"its attribute 'axis' is \(1, 2\); expected int"),
        ({"axes": 1}, r"its attribute 'axes' is 1; expected a list, as the default \(0,\) is"),
        ({"other": 1}, "the attribute 'other', which the operator lacks; its attributes are: axis, axes, table"),
        ({"table": 1}, "its attribute 'table' is 1; expected a tensor"),
    ],
)
def test_an_attribute_that_does_not_suit_is_named(attributes: dict[str, Any], message: str) -> None:
    """With what was expected."""
    given = {name: Attribute.of(value) for name, value in attributes.items()}
    with pytest.raises(InvalidGraph, match=message):
        decode(given, {"axis": -1, "axes": (0,), "table": np.zeros(1)})


def test_an_attribute_without_default_must_be_there() -> None:
    """The message names it."""

    def function(x: Any, *, axis: int) -> None: ...

    with pytest.raises(InvalidGraph, match="lacks the attribute 'axis', which has no default"):
        decode({}, read_attributes(function))
