"""Attributes that a library makes or reads, operators of the runtime that it calls, and shape inference."""

from __future__ import annotations

import ctypes
import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from sardonyx.custom_ops.abi.entry import INT32, POINTER, SIZE, Entry, entry
from sardonyx.custom_ops.abi.frame import find_frame
from sardonyx.custom_ops.abi.handles import find, keep
from sardonyx.custom_ops.abi.node_info import NodeInfo
from sardonyx.custom_ops.abi.strings import address_of, bytes_of, read_text, text_of, write_int32, write_pointer, write_size
from sardonyx.custom_ops.abi.values import HostValue, find_value, make_value
from sardonyx.dtypes import DataType, OnnxValue
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.errors import NotImplemented as NotSupported
from sardonyx.ir import Attribute, AttributeKind, MapType, Node, SequenceType, TensorType, Value, ValueType
from sardonyx.providers.reference.provider import evaluate
from sardonyx.providers.reference.registry import find_kernel

__all__ = ["ENTRIES", "ShapeContext", "attributes_of"]

ENTRIES: list[Entry] = []

_INT, _INTS, _FLOAT, _FLOATS, _STRING, _STRINGS = range(1, 7)
_KINDS = {
    _INT: AttributeKind.INT,
    _INTS: AttributeKind.INTS,
    _FLOAT: AttributeKind.FLOAT,
    _FLOATS: AttributeKind.FLOATS,
    _STRING: AttributeKind.STRING,
    _STRINGS: AttributeKind.STRINGS,
}
"""OrtOpAttrType -> the kind of attribute that a library can make and read as plain memory."""

_GRAPH, _TENSOR = 7, 8
_TYPES = {kind: number for number, kind in _KINDS.items()} | {AttributeKind.GRAPH: _GRAPH, AttributeKind.TENSOR: _TENSOR}
"""The kind of attribute -> its OrtOpAttrType; others have none."""


@dataclasses.dataclass(frozen=True, slots=True)
class OpAttribute:
    """An OrtOpAttr."""

    name: str
    """The attribute's name."""
    attribute: Attribute
    """The attribute."""
    text: bytes
    """Its name as a library reads it."""

    @staticmethod
    def of(name: str, attribute: Attribute) -> OpAttribute:
        """Make one."""
        return OpAttribute(name, attribute, bytes_of(name) + b"\0")


@dataclasses.dataclass(frozen=True, slots=True)
class BuiltIn:
    """An OrtOp: an operator of the runtime that a library calls."""

    op_type: str
    """The operator."""
    domain: str
    """Its domain; "" is ai.onnx."""
    version: int
    """The opset version under which it is read."""
    attributes: dict[str, Attribute]
    """Its attributes."""
    input_count: int
    """How many inputs it takes."""
    output_count: int
    """How many outputs it has."""


@dataclasses.dataclass(slots=True)
class ShapeContext:
    """An OrtShapeInferContext."""

    inputs: tuple[HostValue, ...]
    """Type and shape of each input, UNDEFINED where nothing is known."""
    attributes: dict[str, int]
    """Name -> handle of an OpAttribute."""
    outputs: dict[int, tuple[DataType, tuple[int, ...], tuple[str, ...]]]
    """Output -> element type, sizes (-1 for unknown ones) and symbols that the library set."""


def _read_attribute(data: int | None, count: int, kind: int) -> object:
    """Return what `count` elements at an address mean for this OrtOpAttrType."""
    if kind not in _KINDS:
        raise NotSupported(f"the library makes an attribute of the OrtOpAttrType {kind}; known are 1 to 6")
    if kind in (_INT, _FLOAT):
        return _numbers(data, 1, kind)[0]
    if kind in (_INTS, _FLOATS):
        return tuple(_numbers(data, count, kind))
    if kind == _STRING:
        return text_of(ctypes.string_at(data or 0, count)) if count else ""
    return tuple(read_text(address) for address in (ctypes.c_uint64 * count).from_address(data or 0)) if count else ()


def _numbers(data: int | None, count: int, kind: int) -> list[object]:
    element: Any = ctypes.c_int64 if kind in (_INT, _INTS) else ctypes.c_float
    if count and not data:
        raise InvalidArgument("the library gave NULL for the numbers of an attribute")
    return list((element * count).from_address(data or 0)) if count else []


@entry(ENTRIES, "CreateOpAttr", POINTER, POINTER, INT32, INT32, POINTER)
def _create_op_attr(name: int | None, data: int | None, count: int, kind: int, out: int | None) -> None:
    value = _read_attribute(data, count, kind)
    write_pointer(out, keep(OpAttribute.of(read_text(name), Attribute(_KINDS[kind], value))))


@entry(ENTRIES, "ReadOpAttr", POINTER, INT32, POINTER, SIZE, POINTER)
def _read_op_attr(handle: int | None, kind: int, data: int | None, size: int, out: int | None) -> None:
    found = find(handle, OpAttribute)
    if kind not in _KINDS or found.attribute.kind is not _KINDS[kind]:
        raise InvalidArgument(f"the attribute {found.name!r} has type {found.attribute.kind.name}, not OrtOpAttrType {kind}")
    content = _packed(found.attribute.value, kind)
    if out:
        write_size(out, len(content))
    if size < len(content) or not data:
        raise Fail(f"the buffer of {size} bytes is too small for the {len(content)} of the attribute {found.name!r}")
    ctypes.memmove(data, content, len(content))


@entry(ENTRIES, "OpAttr_GetName", POINTER, POINTER)
def _op_attr_get_name(handle: int | None, out: int | None) -> None:
    write_pointer(out, address_of(find(handle, OpAttribute).text))


@entry(ENTRIES, "OpAttr_GetType", POINTER, POINTER)
def _op_attr_get_type(handle: int | None, out: int | None) -> None:
    write_int32(out, _TYPES.get(find(handle, OpAttribute).attribute.kind, 0))


@entry(ENTRIES, "OpAttr_GetTensorAttributeAsOrtValue", POINTER, POINTER)
def _op_attr_get_tensor(handle: int | None, out: int | None) -> None:
    found = find(handle, OpAttribute)
    if found.attribute.kind is not AttributeKind.TENSOR:
        raise InvalidArgument(f"the attribute {found.name!r} has type {found.attribute.kind.name}, not TENSOR")
    write_pointer(out, make_value(found.attribute.value.numpy().copy()).address)


def _packed(value: Any, kind: int) -> bytes:
    """Return an attribute's value in the library's form: numbers in a row, texts each ended by a zero byte."""
    if kind == _STRING:
        return bytes_of(value)
    if kind == _STRINGS:
        return b"".join(bytes_of(text) + b"\0" for text in value)
    return np.array(value, np.int64 if kind in (_INT, _INTS) else np.float32).tobytes()


@entry(
    ENTRIES,
    "CreateOp",
    *(POINTER, POINTER, POINTER, INT32, POINTER, POINTER, INT32, POINTER, INT32, INT32, INT32, POINTER),
)
def _create_op(
    info: int | None,
    name: int | None,
    domain: int | None,
    version: int,
    constraint_names: int | None,
    constraint_types: int | None,
    constraint_count: int,
    attributes: int | None,
    attribute_count: int,
    input_count: int,
    output_count: int,
    out: int | None,
) -> None:
    find(info, NodeInfo)
    op_type, where = read_text(name), read_text(domain) if domain else ""
    where = "" if where == "ai.onnx" else where
    if find_kernel(where, op_type, version) is None:
        raise NotSupported(f"the library calls {where or 'ai.onnx'}.{op_type} of version {version}, which sardonyx does not have")
    handles = (ctypes.c_uint64 * attribute_count).from_address(attributes or 0) if attribute_count else ()
    found = [find(handle, OpAttribute) for handle in handles]
    made = {item.name: item.attribute for item in found}
    write_pointer(out, keep(BuiltIn(op_type, where, version, made, input_count, output_count)))


@entry(ENTRIES, "InvokeOp", POINTER, POINTER, POINTER, INT32, POINTER, INT32)
def _invoke_op(
    context: int | None, op: int | None, inputs: int | None, input_count: int, outputs: int | None, output_count: int
) -> None:
    find_frame(context)
    operator = find(op, BuiltIn)
    if (input_count, output_count) != (operator.input_count, operator.output_count):
        raise InvalidArgument(
            f"{operator.op_type} was made for {operator.input_count} inputs and {operator.output_count} outputs, "
            f"the library gives {input_count} and {output_count}"
        )
    given = [find_value(address).content if address else None for address in _addresses(inputs, input_count)]
    targets = [find_value(address) if address else None for address in _addresses(outputs, output_count)]
    results = _evaluate(operator, given, targets)
    for index, (target, result) in enumerate(zip(targets, results, strict=False)):
        if target is not None:
            _store(operator, index, target, result)


def _evaluate(operator: BuiltIn, given: list[OnnxValue], targets: list[HostValue | None]) -> list[OnnxValue]:
    values = [None if content is None else Value(f"x{index}", _type_of(content)) for index, content in enumerate(given)]
    node = Node(
        operator.op_type,
        values,
        [Value(f"y{index}" if target is not None else "") for index, target in enumerate(targets)],
        operator.attributes,
        domain=operator.domain,
        version=operator.version,
        name=f"called by a library: {operator.op_type}",
    )
    for value, target in zip(node.outputs, targets, strict=True):
        if target is not None and target.container is None:
            value.type = TensorType(target.dtype, target.shape)
    return evaluate(node, given)


def _type_of(content: OnnxValue) -> ValueType:
    if isinstance(content, np.ndarray):
        return TensorType(DataType.from_numpy(content.dtype), content.shape)
    if isinstance(content, list):
        return SequenceType(_type_of(content[0]) if content else None)
    key, value = next(iter(content.items()), (0, 0.0))
    return MapType(DataType.STRING if isinstance(key, str) else DataType.INT64, _type_of(np.asarray(value)))


def _store(operator: BuiltIn, index: int, target: HostValue, result: object) -> None:
    if target.container is not None and type(target.container) is type(result):
        target.container = result
        return
    if target.array is None or not isinstance(result, np.ndarray) or target.array.shape != result.shape:
        found = list(result.shape) if isinstance(result, np.ndarray) else result
        raise InvalidArgument(f"output {index} of {operator.op_type} has shape {found}, the library's value {list(target.shape)}")
    target.encoded = None
    target.array[...] = result


def _addresses(address: int | None, count: int) -> tuple[int, ...]:
    return tuple((ctypes.c_uint64 * count).from_address(address or 0)) if count > 0 else ()


@entry(ENTRIES, "ShapeInferContext_GetInputCount", POINTER, POINTER)
def _shape_get_input_count(context: int | None, out: int | None) -> None:
    write_size(out, len(find(context, ShapeContext).inputs))


@entry(ENTRIES, "ShapeInferContext_GetInputTypeShape", POINTER, SIZE, POINTER)
def _shape_get_input_type_shape(context: int | None, index: int, out: int | None) -> None:
    inputs = find(context, ShapeContext).inputs
    if index >= len(inputs):
        raise InvalidArgument(f"the library asks for input {index} of a node that has {len(inputs)}")
    write_pointer(out, inputs[index].address)


@entry(ENTRIES, "ShapeInferContext_GetAttribute", POINTER, POINTER, POINTER)
def _shape_get_attribute(context: int | None, name: int | None, out: int | None) -> None:
    attributes, wanted = find(context, ShapeContext).attributes, read_text(name)
    if wanted not in attributes:
        raise InvalidArgument(f"no attribute with name: '{wanted}' is defined")
    write_pointer(out, attributes[wanted])


@entry(ENTRIES, "ShapeInferContext_SetOutputTypeShape", POINTER, SIZE, POINTER)
def _shape_set_output_type_shape(context: int | None, index: int, info: int | None) -> None:
    found = find_value(info)
    find(context, ShapeContext).outputs[index] = found.dtype, found.shape, found.symbols


def attributes_of(attributes: Mapping[str, Attribute]) -> dict[str, int]:
    """Return a handle of an OrtOpAttr for each attribute that the interface has a form for; the caller drops them."""
    known = {name: item for name, item in attributes.items() if item.kind in _TYPES and item.reference is None}
    return {name: keep(OpAttribute.of(name, item)) for name, item in known.items()}
