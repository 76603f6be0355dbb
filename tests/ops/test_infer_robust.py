"""Inference on arbitrary facts and attributes: whatever a file holds, nothing but an error of ours comes out."""

from __future__ import annotations

import contextlib
import random
from typing import Any

import numpy as np
import onnx.defs
import pytest
from support.infer_op import A, B

from sardonyx import errors
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Attribute, AttributeKind, Graph, Node, SequenceType, Tensor, TensorType, Value
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import UNKNOWN, Fact, known, tensor
from sardonyx.ops.infer import infer_node
from sardonyx.ops.schema import OpSchema
from sardonyx.ops.schemas import find_schema
from sardonyx.ops.schemas_contrib import CONTRIB_SCHEMAS

OPERATORS = sorted({(item.domain, item.name) for item in onnx.defs.get_all_schemas()} | set(CONTRIB_SCHEMAS))
ROUNDS = 12
TYPES = (DataType.FLOAT, DataType.INT64, DataType.INT64, DataType.BOOL, DataType.UINT8, DataType.STRING)


def any_shape(draw: random.Random) -> tuple[Any, ...]:
    dims = (0, 1, 1, 2, 3, 4, 8, A, B, 2 * A, anonymous())
    return tuple(draw.choice(dims) for _ in range(draw.randint(0, 5)))


def any_fact(draw: random.Random) -> Fact:
    kind = draw.random()
    dtype = draw.choice(TYPES)
    if kind < 0.1:
        return draw.choice([UNKNOWN, tensor(dtype), Fact(SequenceType(TensorType(dtype, any_shape(draw))))])
    if kind < 0.6:
        return tensor(dtype, any_shape(draw))
    elements = [draw.choice([-2, -1, 0, 1, 2, 3, 100, 2**62]) for _ in range(draw.randint(0, 6))]
    if kind < 0.7:
        return known(DataType.INT64, np.array([*elements, A, None], object))
    if kind < 0.8:
        return known(DataType.FLOAT, np.array(elements, np.float32))
    return known(DataType.INT64, np.array(elements if kind < 0.9 else draw.randint(-2, 5), np.int64))


def any_attribute(draw: random.Random, kind: AttributeKind) -> Attribute | None:
    inner = Value("inner")
    body = Node("Identity", [inner], [Value("out")], version=13)
    choices: dict[AttributeKind, Any] = {
        AttributeKind.INT: draw.choice([-3, -1, 0, 1, 1, 2, 3, 7]),
        AttributeKind.FLOAT: draw.choice([0.0, 0.5, 2.0]),
        AttributeKind.STRING: draw.choice(["NOTSET", "SAME_UPPER", "VALID", "none", "bidirectional", "ij,jk->ik", "?"]),
        AttributeKind.INTS: tuple(draw.choice([-1, 0, 1, 1, 2, 3]) for _ in range(draw.randint(0, 5))),
        AttributeKind.FLOATS: tuple(draw.choice([0.0, 1.0, 0.5]) for _ in range(draw.randint(0, 4))),
        AttributeKind.STRINGS: ("a", "b"),
        AttributeKind.TENSOR: Tensor.from_array(np.ones(draw.choice([0, 1, 3]), np.float32)),
        AttributeKind.GRAPH: Graph("body", [inner], body.outputs, [], [body]),
    }
    return Attribute(kind, choices[kind]) if kind in choices else None


def any_node(draw: random.Random, schema: OpSchema, version: int) -> tuple[Node, dict[Value, Fact]]:
    count = draw.randint(schema.min_inputs, min(schema.max_inputs, schema.min_inputs + 3))
    values: list[Value | None] = [Value(f"x{index}") if draw.random() < 0.95 else None for index in range(count)]
    outputs = draw.randint(schema.min_outputs, min(schema.max_outputs, schema.min_outputs + 2))
    node = Node(schema.name, values, outputs, {}, domain=schema.domain, version=version)
    for formal in schema.attributes.values():
        found = any_attribute(draw, formal.kind) if formal.is_required or draw.random() < 0.5 else None
        if found is not None:
            node.attributes[formal.name] = found
    return node, {value: any_fact(draw) for value in values if value is not None}


@pytest.mark.parametrize(("domain", "op_type"), OPERATORS, ids=lambda item: item or "ai.onnx")
def test_arbitrary_nodes_are_inferred_or_refused(domain: str, op_type: str) -> None:
    """Inference gives facts whose elements have their shape, or raises InvalidGraph or, of what nobody computes, NotImplemented."""
    draw = random.Random(f"{domain}.{op_type}")
    schema = find_schema(domain, op_type, 1 << 20)
    assert schema is not None
    for _ in range(ROUNDS):
        node, facts = any_node(draw, schema, draw.choice([schema.since_version, 1 << 20]))
        with contextlib.suppress(InvalidGraph, errors.NotImplemented):
            for fact in infer_node(node, facts):
                assert fact.value is None or fact.value.shape == fact.shape
