"""Changes of a model's structure that no exporter would make: attributes, types, shapes, names, order, subgraphs, functions."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
from fuzz.draw import Draw
from fuzz.model import HOSTILE
from onnx import AttributeProto, TensorProto, helper, numpy_helper

__all__ = ["MUTATIONS", "mutate_bytes"]

_TYPES = (
    TensorProto.FLOAT,
    TensorProto.INT64,
    TensorProto.DOUBLE,
    TensorProto.BOOL,
    TensorProto.UINT8,
    TensorProto.INT32,
    TensorProto.FLOAT16,
    TensorProto.STRING,
    TensorProto.BFLOAT16,
    TensorProto.INT4,
    TensorProto.FLOAT8E4M3FN,
    TensorProto.COMPLEX64,
    0,
    99,
)
_SMALL = (1, 0, 2, -1, 3, -2, 4, 5, 8)
_FLOATS = (0.0, 1.0, -1.0, float("nan"), float("inf"), -float("inf"), 1e30, 1e-30, 0.5, 1e-45)
_FINITE = tuple(number for number in _FLOATS if np.isfinite(number))
"""What constants become: what a weight of NaN does beside padding is nobody's promise."""
_TEXTS = (b"", b"NOTSET", b"SAME_UPPER", b"VALID", b"none", b"linear", b"\xff\xfe", b"a" * 300, b"constant")
_FOLLOWERS = "Identity Relu Transpose Softmax Flatten Shape Neg Sigmoid Squeeze ReduceSum NonZero Size Exp Abs Not".split()


def _graphs(model: Any) -> list[Any]:
    """The main graph, and all graphs in attributes and functions; a function counts as a graph of its nodes."""
    found, waiting = [], [model.graph, *model.functions]
    while waiting:
        graph = waiting.pop(0)
        found.append(graph)
        waiting += [attribute.g for node in graph.node for attribute in node.attribute if attribute.HasField("g")]
    return found


def _some_node(draw: Draw, model: Any) -> tuple[Any, Any] | None:
    graph = draw.pick(_graphs(model))
    return (graph, draw.pick(graph.node)) if len(graph.node) else None


def _integer(draw: Draw) -> int:
    return draw.pick(_SMALL) if not draw.chance(3) else draw.pick(HOSTILE)


def change_attribute(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """Another number, text or length; or none; or another kind."""
    found = _some_node(draw, model)
    if found is None or not found[1].attribute:
        return
    node = found[1]
    attribute = draw.pick(node.attribute)
    way = draw.below(8)
    if way == 7:
        node.attribute.remove(attribute)
    elif way == 6:
        attribute.type = draw.pick((AttributeProto.FLOAT, AttributeProto.INT, AttributeProto.STRINGS, AttributeProto.TENSOR, 0))
    elif attribute.type == AttributeProto.INTS and attribute.ints:
        _change_list(draw, attribute.ints, lambda: _integer(draw))
    elif attribute.type == AttributeProto.FLOATS and attribute.floats:
        _change_list(draw, attribute.floats, lambda: draw.pick(_FLOATS))
    elif attribute.type == AttributeProto.INT:
        attribute.i = _integer(draw)
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = draw.pick(_FLOATS)
    elif attribute.type == AttributeProto.STRING:
        attribute.s = draw.pick(_TEXTS)
    elif attribute.type == AttributeProto.TENSOR:
        _change_tensor(draw, attribute.t)


def _change_list(draw: Draw, items: Any, item: Callable[[], Any]) -> None:
    way = draw.below(6)
    if way == 4:
        items.append(item())
    elif way == 5:
        del items[draw.below(len(items))]
    else:
        items[draw.below(len(items))] = item()


def add_attribute(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """One that the operator has by default, with a number that it cannot have."""
    found = _some_node(draw, model)
    if found is None:
        return
    node = found[1]
    names = "axis keepdims auto_pad pads strides dilations group ceil_mode allowzero axes to mode alpha fmod blocksize".split()
    name = draw.pick(names)
    if any(attribute.name == name for attribute in node.attribute):
        return
    value = [_integer(draw) for _ in range(draw.below(5))] if name in ("pads", "strides", "dilations", "axes") else _integer(draw)
    if name in ("auto_pad", "mode"):
        value = draw.pick(_TEXTS[:6]).decode()  # type: ignore[assignment]
    if value != []:
        node.attribute.append(helper.make_attribute(name, value))


def change_type(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """Declare another type or shape of an input, an output or an inner value."""
    graph = model.graph
    values = [*graph.input, *graph.output, *graph.value_info]
    if not values:
        return
    value = draw.pick(values)
    kind = value.type.tensor_type
    way, dims = draw.below(7), kind.shape.dim
    if way == 0 and dims:
        dims[draw.below(len(dims))].dim_value = draw.pick((1, 2, 0, 3, -1, 7, 1 << 31, (1 << 63) - 1))
    elif way == 1 and dims:
        dims[draw.below(len(dims))].dim_param = draw.pick(("n", "m", "", "n+1", "2"))
    elif way == 2:
        dims.add().dim_value = draw.pick((1, 2, 0))
    elif way == 3 and dims:
        del dims[draw.below(len(dims))]
    elif way == 4:
        kind.ClearField("shape")
    elif way == 5:
        kind.elem_type = draw.pick(_TYPES)
    else:
        value.ClearField("type")


def make_open(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """Declare all sizes of the inputs as symbols, of which equal sizes may share one."""
    shares = draw.chance(2)
    for value in model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                dim.dim_param = f"s{dim.dim_value}" if shares else f"{value.name}_{axis}"
    del model.graph.value_info[:]
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")


def make_constant(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """Make an input an initializer."""
    named = [value for value in model.graph.input if isinstance(feeds.get(value.name), np.ndarray)]
    if not named:
        return
    value = draw.pick(named)
    try:
        tensor = numpy_helper.from_array(np.ascontiguousarray(feeds[value.name]), value.name)
    except (TypeError, ValueError, NotImplementedError, RuntimeError):
        return
    model.graph.initializer.append(tensor)
    if not draw.chance(4):
        model.graph.input.remove(value)
        del feeds[value.name]


def make_all_constant(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """Make all inputs but the first initializers, as weights are."""
    for value in list(model.graph.input)[1:]:
        if isinstance(feeds.get(value.name), np.ndarray):
            try:
                tensor = numpy_helper.from_array(np.ascontiguousarray(feeds[value.name]), value.name)
            except (TypeError, ValueError, NotImplementedError, RuntimeError):
                continue
            model.graph.initializer.append(tensor)
            model.graph.input.remove(value)
            del feeds[value.name]


def change_operator(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """Another operator, domain or overload."""
    found = _some_node(draw, model)
    if found is None:
        return
    node, way = found[1], draw.below(8)
    others = (
        "Relu Add Mul MatMul Concat Gather Conv Reshape Softmax Where Slice Pad Transpose ReduceSum Cast Max Div Resize Gemm TopK"
    )
    if way < 6:
        node.op_type = draw.pick(others.split())
    elif way == 6:
        node.domain = draw.pick(("com.microsoft", "ai.onnx.ml", "local", "ai.onnx"))
    else:
        node.op_type = draw.pick(("", "NoSuchOperator", "relu", "a" * 300))


def change_names(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """Read another value, none, or one's own result; write one twice."""
    found = _some_node(draw, model)
    if found is None:
        return
    graph, node = found
    outside = [value if isinstance(value, str) else value.name for value in graph.input]
    known = [*outside, *(name for other in graph.node for name in other.output), "", "no_such_value"]
    way = draw.below(6)
    if way < 3 and node.input:
        node.input[draw.below(len(node.input))] = draw.pick(known)
    elif way == 3 and node.output:
        node.output[draw.below(len(node.output))] = draw.pick(known)
    elif way == 4:
        node.input.append(draw.pick(known))
    elif node.input:
        del node.input[draw.below(len(node.input))]


def change_order(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """Two nodes in each other's place, one left out, or one twice."""
    found = _some_node(draw, model)
    if found is None:
        return
    graph, node = found
    way, place = draw.below(3), draw.below(len(graph.node))
    if way == 0:
        other = copy.deepcopy(graph.node[place])
        graph.node[place].CopyFrom(node)
        node.CopyFrom(other)
    elif way == 1:
        del graph.node[place]
    else:
        graph.node.insert(place, copy.deepcopy(node))


def change_constant(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """Other elements, another shape, or fewer bytes."""
    if model.graph.initializer:
        _change_tensor(draw, draw.pick(model.graph.initializer))


def _change_tensor(draw: Draw, tensor: Any) -> None:
    way = draw.below(6)
    if way < 3:
        try:
            array = numpy_helper.to_array(tensor).copy()
        except (TypeError, ValueError, RuntimeError):
            return
        if array.size and array.dtype.kind in "iuf":
            with np.errstate(all="ignore"):
                number = draw.pick(_FINITE) if array.dtype.kind == "f" else _integer(draw)
                array.reshape(-1)[draw.below(array.size)] = np.array(number).astype(array.dtype)
            tensor.CopyFrom(numpy_helper.from_array(array, tensor.name))
    elif way == 3 and tensor.dims:
        tensor.dims[draw.below(len(tensor.dims))] = draw.pick((1, 2, 0, 3, -1, 1 << 40))
    elif way == 4:
        tensor.raw_data = tensor.raw_data[: draw.below(len(tensor.raw_data) + 1)]
    else:
        tensor.data_type = draw.pick(_TYPES)


def follow(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """Another node behind an output."""
    graph = model.graph
    if not graph.output:
        return
    value = draw.pick(graph.output)
    name = f"{value.name}_after"
    if name in {output.name for output in graph.output}:
        return
    op_type = draw.pick((*_FOLLOWERS, "Add", "Concat"))
    reads = [value.name, value.name] if op_type in ("Add", "Concat") else [value.name]
    attributes = {"axis": 0} if op_type == "Concat" else {}
    graph.node.append(helper.make_node(op_type, reads, [name], **attributes))
    graph.output.append(onnx.ValueInfoProto(name=name))
    if not draw.chance(3):
        graph.output.remove(value)


def precede(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """A node between an input and who reads it."""
    graph = model.graph
    named = [name for name in (value.name for value in graph.input) if isinstance(feeds.get(name), np.ndarray)]
    if not named or any(node.output and node.output[0].endswith("_before") for node in graph.node):
        return
    name = draw.pick(named)
    for node in graph.node:
        for place, read in enumerate(node.input):
            if read == name:
                node.input[place] = f"{name}_before"
    graph.node.insert(0, helper.make_node(draw.pick(("Identity", "Relu", "Neg", "Transpose", "Abs")), [name], [f"{name}_before"]))


def put_in_branch(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """All nodes in a branch of an If, or the body of a Loop, which capture what they read."""
    graph = model.graph
    outputs = [value.name for value in graph.output]
    if not outputs or not graph.node or "fuzz_condition" in feeds:
        return
    inner = [onnx.ValueInfoProto(name=name) for name in outputs]
    body = helper.make_graph(list(graph.node), "inner", [], inner)
    condition = helper.make_tensor_value_info("fuzz_condition", TensorProto.BOOL, [])
    feeds["fuzz_condition"] = np.array(not draw.chance(6))
    graph.input.append(condition)
    if draw.chance(3):
        body.input.extend(
            [
                helper.make_tensor_value_info("fuzz_turn", TensorProto.INT64, []),
                helper.make_tensor_value_info("fuzz_again", TensorProto.BOOL, []),
            ]
        )
        body.node.append(helper.make_node("Identity", ["fuzz_again"], ["fuzz_on"]))
        body.output.insert(0, helper.make_tensor_value_info("fuzz_on", TensorProto.BOOL, []))
        turns = helper.make_node("Constant", [], ["fuzz_turns"], value_int=draw.pick((1, 2, 0, 3, -1)))
        loop = helper.make_node("Loop", ["fuzz_turns", "fuzz_condition"], outputs, body=body)
        nodes = [turns, loop]
    else:
        nodes = [helper.make_node("If", ["fuzz_condition"], outputs, then_branch=body, else_branch=copy.deepcopy(body))]
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.value_info[:]
    for value in graph.output:
        value.ClearField("type")


def put_in_function(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """All nodes in a function that the model calls, once or, by another function, twice."""
    graph = model.graph
    made = {name for node in graph.node for name in node.output}
    reads = [name for name in dict.fromkeys(name for node in graph.node for name in node.input) if name and name not in made]
    outputs = [value.name for value in graph.output]
    if not outputs or model.functions or set(outputs) - made:
        return
    imports = [*model.opset_import, helper.make_opsetid("local", 1)]
    model.functions.append(helper.make_function("local", "whole", reads, outputs, list(graph.node), imports))
    call = helper.make_node("whole", reads, outputs, domain="local")
    if draw.chance(3):
        model.functions.append(helper.make_function("local", "outer", reads, outputs, [call], imports))
        call = helper.make_node("outer", reads, outputs, domain="local")
    if draw.chance(8):
        model.functions[0].node.append(copy.deepcopy(call))
    del graph.node[:]
    graph.node.append(call)
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.ir_version = max(model.ir_version, 9)


def change_version(draw: Draw, model: Any, feeds: dict[str, Any]) -> None:
    """Another operator set or IR version, or none."""
    way = draw.below(5)
    if way < 3 and model.opset_import:
        draw.pick(model.opset_import).version = draw.pick((21, 13, 17, 24, 11, 9, 7, 1, 0, -1, 999))
    elif way == 3:
        model.ir_version = draw.pick((8, 3, 10, 0, 99, 1))
    else:
        del model.opset_import[:]


MUTATIONS: Sequence[Callable[[Draw, Any, dict[str, Any]], None]] = (
    make_open,
    make_constant,
    make_all_constant,
    change_attribute,
    change_attribute,
    change_attribute,
    add_attribute,
    change_type,
    change_names,
    change_operator,
    change_order,
    change_constant,
    follow,
    follow,
    precede,
    put_in_branch,
    put_in_function,
    change_version,
)
"""Each changes a ModelProto and the feeds that go with it; the first is the simplest."""


def mutate_bytes(draw: Draw, content: bytes) -> bytes:
    """Other bytes here and there, some left out, some twice, or an end too early."""
    data = bytearray(content)
    for _ in range(1 + draw.below(4)):
        if not data:
            break
        way, place = draw.below(6), draw.below(len(data))
        length = 1 + draw.below(16)
        if way < 2:
            data[place] = draw.below(256)
        elif way == 2:
            data[place] ^= 1 << draw.below(8)
        elif way == 3:
            del data[place : place + length]
        elif way == 4:
            data[place:place] = data[place : place + length]
        else:
            del data[place:]
    return bytes(data)
