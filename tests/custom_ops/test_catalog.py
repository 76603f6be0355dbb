"""Which definition serves a node, and what nodes are checked against."""

from __future__ import annotations

from typing import Any

import pytest

from sardonyx.custom_ops.catalog import Catalog
from sardonyx.custom_ops.definition import Arity, OperatorDefinition, Parameter
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Node, TensorType, Value
from sardonyx.ops.fact import tensor
from sardonyx.ops.schemas import check_node, check_types

FLOAT, INT64, OPEN = DataType.FLOAT, DataType.INT64, DataType.UNDEFINED


def _definition(*inputs: Parameter, outputs: tuple[DataType, ...] = (FLOAT,), **others: Any) -> OperatorDefinition:
    return OperatorDefinition("mine", "Op", inputs, tuple(map(Parameter, outputs)), lambda site: None, **others)  # type: ignore[arg-type, return-value]


def _node(*types: DataType, version: int = 1) -> Node:
    return Node("Op", [Value(f"x{index}", TensorType(kind)) for index, kind in enumerate(types)], 1, domain="mine", version=version)


def test_the_types_of_the_inputs_choose() -> None:
    """Of two definitions of one name."""
    first, second = _definition(Parameter(FLOAT)), _definition(Parameter(INT64))
    catalog = Catalog([first, second])
    assert catalog.find(_node(INT64)) is second
    assert catalog.find(_node(FLOAT)) is first
    assert catalog.find(_node(DataType.BOOL)) is None


def test_the_version_chooses() -> None:
    """An operator exists in a range of versions of its domain."""
    first, second = _definition(Parameter(FLOAT), until=2), _definition(Parameter(FLOAT), since=3)
    catalog = Catalog([first, second])
    assert [catalog.find(_node(FLOAT, version=version)) for version in (1, 2, 3)] == [first, first, second]
    assert Catalog([second]).find_operator("mine", "Op", 2) is None


def test_the_schema_takes_what_any_definition_takes() -> None:
    """And refuses other types with the name of the library."""
    made = Catalog([_definition(Parameter(FLOAT), owner="libx"), _definition(Parameter(INT64), owner="libx")])
    operator = made.find_operator("mine", "Op", 1)
    assert operator is not None
    check_types(_node(INT64), operator.schema)
    with pytest.raises(InvalidGraph, match=r"of libx takes tensor\(float\) or tensor\(int64\)"):
        check_types(_node(DataType.BOOL), operator.schema)


def test_arities_are_checked() -> None:
    """Optional and variadic inputs, with a least number."""
    many = Parameter(FLOAT, Arity.VARIADIC, min_arity=2)
    operator = Catalog([_definition(Parameter(FLOAT), many)]).find_operator("mine", "Op", 1)
    assert operator is not None
    check_node(_node(FLOAT, FLOAT, FLOAT, FLOAT), operator.schema)
    with pytest.raises(InvalidGraph, match="has 2 inputs, expected at least 3"):
        check_node(_node(FLOAT, FLOAT), operator.schema)


def test_types_follow_from_the_declaration() -> None:
    """Those of open outputs from the first open input."""
    operator = Catalog([_definition(Parameter(FLOAT), Parameter(OPEN), outputs=(OPEN,))]).find_operator("mine", "Op", 1)
    assert operator is not None
    (fact,) = operator.infer(_node(FLOAT, INT64), [tensor(FLOAT, (2,)), tensor(INT64)])
    assert (fact.dtype, fact.shape) == (INT64, None)
