"""Cases of the suite with something wrong in them: one change each, in a type, a rank, a size, an index or an attribute."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import AttributeProto, helper
from support.backend_suite import SuiteCase, cases_of

from sardonyx.ops.schemas import find_schema

__all__ = ["BadCase", "bad_cases", "operators", "samples_of"]

_NAME = "the node"
_HUGE = 1 << 40
_ENDLESS = {("trip_count", f"with {_HUGE} as its last element")}
"""What is valid, and runs on and on."""
_SAMPLES = 2
"""How many cases of each operator are changed."""


@dataclasses.dataclass(frozen=True)
class BadCase:
    """A model of one node, with what to feed it."""

    change: str
    """What was changed, in words."""
    model: Any
    """The ModelProto; Any as protobuf's messages are."""
    feed: dict[str, Any]
    """Arrays, lists or None by input name."""


def operators() -> list[tuple[str, str]]:
    """(domain, operator) of every operator that has a case of one node."""
    return sorted({(case.model.graph.node[0].domain, case.model.graph.node[0].op_type) for case in _single()})


def samples_of(domain: str, op_type: str) -> list[SuiteCase]:
    """A few cases of an operator; their names decide which."""
    found = [case for case in _single() if (case.model.graph.node[0].domain, case.model.graph.node[0].op_type) == (domain, op_type)]
    return sorted(found, key=lambda case: zlib.crc32(case.name.encode()))[:_SAMPLES]


def _single() -> list[SuiteCase]:
    return [case for case in cases_of("node") if "_expanded" not in case.name and len(case.model.graph.node) == 1]


def bad_cases(case: SuiteCase) -> Iterator[BadCase]:
    """The case with one change each."""
    inputs = list(case.data_sets[0][0])
    names = [item.name for item in case.model.graph.input]
    for index, array in enumerate(inputs):
        if isinstance(array, np.ndarray):
            for text, changed in _arrays(array):
                if (names[index], text) in _ENDLESS:
                    continue
                yield _with(case, f"{names[index]} {text}", [*inputs[:index], changed, *inputs[index + 1 :]])
    for attribute in case.model.graph.node[0].attribute:
        for value in _values(attribute):
            yield _with(case, f"{attribute.name} = {value!r}", inputs, attribute.name, value)
    for name, kind in _left_out(case.model):
        for value in _LEFT_OUT[kind]:
            bad = _with(case, f"{name} = {value!r}", inputs)
            bad.model.graph.node[0].attribute.append(helper.make_attribute(name, value, attr_type=kind))
            yield bad


_LEFT_OUT: dict[int, Sequence[Any]] = {
    AttributeProto.INT: (-7, 0, 99, _HUGE),
    AttributeProto.FLOAT: (float("nan"), float("inf"), -1.0),
    AttributeProto.STRING: ("no such word",),
    AttributeProto.INTS: ([-7], [0, 0], [99, 99], [_HUGE], [_HUGE] * 2),
}
"""What attributes get that the case leaves to their defaults, by kind."""


def _left_out(model: Any) -> Iterator[tuple[str, int]]:
    """Name and kind of the attributes that the node could have."""
    node = model.graph.node[0]
    versions = {item.domain: item.version for item in model.opset_import}
    schema = find_schema(node.domain, node.op_type, versions.get(node.domain, 1))
    given = {attribute.name for attribute in node.attribute}
    for attribute in schema.attributes.values() if schema is not None else ():
        if attribute.name not in given and int(attribute.kind) in _LEFT_OUT:
            yield attribute.name, int(attribute.kind)


def _arrays(array: Any) -> Iterator[tuple[str, Any]]:
    yield f"with a leading axis, {(2, *array.shape)}", np.stack([array, array])
    yield f"with a trailing axis, {(*array.shape, 1)}", array[..., None]
    if array.ndim:
        yield "flat", array.reshape(-1)
        yield "as its first element", array.reshape(-1)[:1].reshape(()) if array.size else _blank((), array.dtype)
    if array.ndim > 1:
        yield "without its first axis", array[0] if len(array) else _blank(array.shape[1:], array.dtype)
    for axis, size in enumerate(array.shape):
        grown = np.concatenate([array, np.take(array, [0], axis)], axis) if size else array
        yield f"one longer along axis {axis}", grown
        yield f"of size 0 along axis {axis}", np.take(array, [], axis)
    if array.dtype.kind == "i" and array.dtype.itemsize >= 4 and array.size:
        for number in (_HUGE, -7, 0) if array.dtype.itemsize == 8 else (-7, 0):
            changed = array.copy()
            changed.reshape(-1)[-1] = number
            yield f"with {number} as its last element", changed
    other: Any = np.zeros(array.shape, bool) if array.dtype != bool else np.zeros(array.shape, np.complex64)
    yield f"of type {other.dtype}", other
    if array.dtype != object:
        texts = np.empty(array.shape, object)
        texts[...] = "text"
        yield "of texts", texts


def _blank(shape: Sequence[int], dtype: Any) -> Any:
    return np.full(shape, "" if np.dtype(dtype).kind == "O" else 0, dtype)


def _values(attribute: Any) -> Iterator[Any]:
    if attribute.type == AttributeProto.INT:
        yield from (-7, 0, 99, _HUGE)
    elif attribute.type == AttributeProto.FLOAT:
        yield from (float("nan"), float("inf"), -1.0)
    elif attribute.type == AttributeProto.STRING:
        yield "no such word"
    elif attribute.type == AttributeProto.INTS:
        yield [*attribute.ints, 1]
        yield list(attribute.ints)[:-1]
        yield from ([number] * max(1, len(attribute.ints)) for number in (-7, 0, 99, _HUGE))
    elif attribute.type in (AttributeProto.FLOATS, AttributeProto.STRINGS):
        items = list(attribute.floats) or [item.decode() for item in attribute.strings]
        yield from ([*items, *items[:1]], items[:-1])


def _with(case: SuiteCase, change: str, inputs: Sequence[Any], name: str = "", value: Any = None) -> BadCase:
    model = onnx.ModelProto.FromString(case.model.SerializeToString())
    node = model.graph.node[0]
    node.name = _NAME
    if name:
        (attribute,) = (item for item in node.attribute if item.name == name)
        kind = attribute.type
        attribute.CopyFrom(helper.make_attribute(name, value, attr_type=kind))
    names = [item.name for item in model.graph.input]
    for item, array in zip(model.graph.input, inputs, strict=False):
        if isinstance(array, np.ndarray):
            item.type.CopyFrom(helper.make_tensor_type_proto(_type_of(array), array.shape))
    for item in model.graph.output:
        item.ClearField("type")
    return BadCase(change, model, dict(zip(names, inputs, strict=False)))


def _type_of(array: Any) -> int:
    return int(onnx.TensorProto.STRING if array.dtype == object else helper.np_dtype_to_tensor_dtype(array.dtype))
