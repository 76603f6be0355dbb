"""Nodes made from schemas alone: any types that the schema lists, any shapes, any attributes; most of them make no sense."""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper
from support.bad_input import BadCase

import sardonyx.providers.reference.kernels  # noqa: F401  registers the operators
from sardonyx.dtypes import DataType
from sardonyx.ir import AttributeKind
from sardonyx.ops.schema import AttributeSchema, OpSchema, ParameterOption, ParameterSchema
from sardonyx.ops.schemas import find_schema
from sardonyx.providers.reference.registry import registered_operators

__all__ = ["newest_schemas", "random_cases"]

_COMMON = ("tensor(float)", "tensor(int64)", "tensor(int32)")
"""The types that stand for a type variable without constraint."""
_WITH_GRAPHS = ("If", "Loop", "Scan", "SequenceMap", "FlexAttention", "Gradient")
"""Operators that are not drawn, since graphs decide what they do."""
_WHOLE = (AttributeKind.GRAPH, AttributeKind.TENSOR, AttributeKind.SPARSE_TENSOR, AttributeKind.TYPE)
"""Kinds of attributes that are not drawn."""


@functools.cache
def newest_schemas() -> dict[str, tuple[OpSchema, int]]:
    """Every operator that the reference provider runs, as domain.name: its newest schema, and an opset that it is read under."""
    found = {f"{domain or 'ai.onnx'}.{name}": _newest(domain, name) for domain, name in registered_operators()}
    return {name: schema for name, schema in found.items() if schema is not None}


def _newest(domain: str, op_type: str) -> tuple[OpSchema, int] | None:
    """The newest schema of an operator that the standard has not dropped."""
    opset = onnx.defs.onnx_opset_version() if not domain else 1 << 20
    schema = find_schema(domain, op_type, opset)
    if schema is not None and schema.is_deprecated:
        opset = schema.since_version - 1
        schema = find_schema(domain, op_type, opset)
    if schema is None:
        return None
    return schema, opset if not domain else schema.since_version


def random_cases(schema: OpSchema, opset: int, count: int) -> Iterator[BadCase]:
    """`count` nodes of an operator; its name decides which. None where it needs a graph, a tensor attribute or an optional."""
    if schema.name in _WITH_GRAPHS:
        return
    for number in range(count):
        generator = np.random.default_rng(zlib.crc32(f"{schema.domain}.{schema.name} {number}".encode()))
        case = _random_case(schema, opset, generator, number)
        if case is not None:
            yield case


def _random_case(schema: OpSchema, opset: int, generator: np.random.Generator, number: int) -> BadCase | None:
    formals = _repeated(schema.inputs, int(generator.integers(0, 3)))
    usual = _shape(generator)
    names: list[str] = []
    feed: dict[str, Any] = {}
    chosen: dict[str, str] = {}
    for index, formal in enumerate(formals):
        types = _types(schema, formal)
        if formal.option is ParameterOption.OPTIONAL and (not types or generator.random() < 0.4):
            names.append("")
            continue
        if not types:
            return None
        kind = chosen.setdefault(formal.type, types[int(generator.integers(len(types)))])
        shape = usual if generator.random() < 0.6 else _shape(generator)
        names.append(f"x{index}")
        feed[f"x{index}"] = _value_of(generator, kind, shape)
    drawn = _attributes(schema, generator)
    return None if drawn is None else _case(schema, opset, names, feed, drawn, number)


def _attributes(schema: OpSchema, generator: np.random.Generator) -> list[Any] | None:
    """Some attributes; None where a graph or a tensor is required. Any as protobuf's messages are."""
    drawn = []
    for attribute in schema.attributes.values():
        if attribute.kind in _WHOLE:
            if attribute.is_required:
                return None
        elif attribute.is_required or generator.random() < 0.3:
            drawn.append(helper.make_attribute(attribute.name, _value(generator, attribute), attr_type=int(attribute.kind)))
    return drawn


def _case(
    schema: OpSchema, opset: int, names: Sequence[str], feed: dict[str, Any], attributes: Sequence[Any], number: int
) -> BadCase:
    outputs = [f"y{index}" for index in range(max(1, schema.min_outputs))]
    node = helper.make_node(schema.name, names, outputs, "the node", domain=schema.domain)
    node.attribute.extend(attributes)
    inputs = [helper.make_value_info(name, _type_of(value)) for name, value in feed.items()]
    graph = helper.make_graph([node], "random", inputs, [helper.make_empty_tensor_value_info(name) for name in outputs])
    imports = [helper.make_opsetid(schema.domain, opset)]
    return BadCase(f"draw {number}", helper.make_model(graph, opset_imports=imports, ir_version=10), feed)


def _repeated(formals: Sequence[ParameterSchema], times: int) -> list[ParameterSchema]:
    """The formal inputs, a variadic one that many times more."""
    is_variadic = bool(formals) and formals[-1].option is ParameterOption.VARIADIC
    return [*formals, *([formals[-1]] * times if is_variadic else [])]


def _types(schema: OpSchema, formal: ParameterSchema) -> list[str]:
    constraint = schema.type_constraints.get(formal.type)
    types = constraint.types if constraint is not None and constraint.types else (formal.type,) if "(" in formal.type else _COMMON
    return sorted(text for text in types if text.startswith(("tensor(", "seq(tensor(", "map(")))


def _value_of(generator: np.random.Generator, kind: str, shape: Sequence[int]) -> Any:
    """A tensor, a list of up to three of them, or a map of up to three numbers or texts."""
    if kind.startswith("seq("):
        inner = kind.removeprefix("seq(").removesuffix(")")
        shapes = [shape if generator.random() < 0.6 else _shape(generator) for _ in range(int(generator.integers(0, 4)))]
        return [_array(generator, inner, item) for item in shapes] or [_array(generator, inner, shape)]
    if kind.startswith("map("):
        key, value = kind.removeprefix("map(").removesuffix(")").split(",", 1)
        inner = value.strip() if value.strip().startswith("tensor(") else f"tensor({value.strip()})"
        count = int(generator.integers(1, 4))
        return {("ab"[:index] if key == "string" else index): _array(generator, inner, ()) for index in range(count)}
    return _array(generator, kind, shape)


def _type_of(value: Any) -> Any:
    """The TypeProto of what `_value_of` made; Any as protobuf's messages are."""
    if isinstance(value, list):
        element = helper.make_tensor_type_proto(int(DataType.from_numpy(value[0].dtype)), None)
        return helper.make_sequence_type_proto(element)
    if isinstance(value, dict):
        key, item = next(iter(value.items()))
        element = helper.make_tensor_type_proto(int(DataType.from_numpy(item.dtype)), ())
        return helper.make_map_type_proto(int(DataType.STRING if isinstance(key, str) else DataType.INT64), element)
    return helper.make_tensor_type_proto(int(DataType.from_numpy(value.dtype)), value.shape)


def _shape(generator: np.random.Generator) -> list[int]:
    return [int(size) for size in generator.integers(0, 4, int(generator.integers(0, 5)))]


def _array(generator: np.random.Generator, kind: str, shape: Sequence[int]) -> Any:
    dtype = DataType.parse(kind.removeprefix("tensor(").removesuffix(")"))
    if dtype is DataType.STRING:
        return np.full(tuple(shape), "ab", object)
    numbers = generator.integers(0, 4, shape) if generator.random() < 0.7 else np.abs(generator.standard_normal(shape) * 3)
    return np.asarray(numbers).astype(dtype.numpy)


def _value(generator: np.random.Generator, attribute: AttributeSchema) -> Any:
    number = int(generator.integers(-2, 4))
    values = {
        AttributeKind.INT: number,
        AttributeKind.FLOAT: float(generator.standard_normal()),
        AttributeKind.STRING: attribute.default if attribute.default and number > 0 else "no such word",
        AttributeKind.INTS: [int(item) for item in generator.integers(0, 4, max(1, number))],
        AttributeKind.FLOATS: [float(item) for item in generator.standard_normal(max(1, number))],
        AttributeKind.STRINGS: ["a"] * max(1, number),
    }
    return values[attribute.kind]
