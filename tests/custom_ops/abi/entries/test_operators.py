"""Attributes of libraries, operators that they call, and shape inference; the library in C uses them too."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from support.custom_sites import site_of
from support.ort_api import ask, call

from sardonyx.custom_ops.abi.entries.operators import ShapeContext, attributes_of
from sardonyx.custom_ops.abi.frame import Frame
from sardonyx.custom_ops.abi.handles import keep
from sardonyx.custom_ops.abi.node_info import NodeInfo
from sardonyx.custom_ops.abi.statuses import raise_status
from sardonyx.custom_ops.abi.values import find_value, make_container, make_info, make_value
from sardonyx.dtypes import DataType
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.errors import NotImplemented as NotSupported
from sardonyx.ir import Attribute, Tensor

INT, INTS, FLOAT, FLOATS, STRING, STRINGS = range(1, 7)


@pytest.mark.parametrize(
    ("kind", "content", "count", "expected"),
    [
        (INT, ctypes.c_int64(3), 1, np.int64(3).tobytes()),
        (INTS, (ctypes.c_int64 * 2)(3, 4), 2, np.array([3, 4]).tobytes()),
        (FLOAT, ctypes.c_float(0.5), 1, np.float32(0.5).tobytes()),
        (FLOATS, (ctypes.c_float * 2)(0.5, 1), 2, np.array([0.5, 1], np.float32).tobytes()),
        (STRING, ctypes.create_string_buffer(b"abc"), 3, b"abc"),
        (STRINGS, (ctypes.c_char_p * 2)(b"a", b"bc"), 2, b"a\0bc\0"),
    ],
)
def test_attributes_are_made_and_read(kind: int, content: Any, count: int, expected: bytes) -> None:
    """Of every kind that there is."""
    made = ask("CreateOpAttr", ctypes.c_char_p(b"x"), ctypes.byref(content), ctypes.c_int(count), ctypes.c_int(kind))
    buffer, size = ctypes.create_string_buffer(64), ctypes.c_size_t()
    raise_status(call("ReadOpAttr", made, ctypes.c_int(kind), ctypes.byref(buffer), 64, ctypes.byref(size)), "read")
    assert buffer.raw[: size.value] == expected
    with pytest.raises(Fail, match="too small"):
        raise_status(call("ReadOpAttr", made, ctypes.c_int(kind), ctypes.byref(buffer), 1, ctypes.byref(size)), "read")


def test_an_attribute_of_another_kind_is_refused() -> None:
    """When it is made, and when it is read."""
    with pytest.raises(NotSupported, match="OrtOpAttrType 9"):
        ask("CreateOpAttr", ctypes.c_char_p(b"x"), None, ctypes.c_int(0), ctypes.c_int(9))
    handle = attributes_of({"x": Attribute.of(3)})["x"]
    with pytest.raises(InvalidArgument, match="has type INT"):
        ask("ReadOpAttr", handle, ctypes.c_int(FLOAT), None, 0)


def _create(op_type: bytes, inputs: int, outputs: int) -> int:
    info = keep(NodeInfo(site_of(), 1))
    arguments = (ctypes.c_char_p(op_type), ctypes.c_char_p(b""), ctypes.c_int(17), None, None, ctypes.c_int(0))
    made: int = ask("CreateOp", info, *arguments, None, ctypes.c_int(0), ctypes.c_int(inputs), ctypes.c_int(outputs))
    return made


def _invoke(op: int, inputs: list[Any], outputs: list[Any]) -> None:
    frame = Frame([], [], [], lambda index, types: DataType.FLOAT, [])
    given = (ctypes.c_uint64 * len(inputs))(*(make_value(item).address for item in inputs))
    made = (ctypes.c_uint64 * len(outputs))(*(make_value(item).address for item in outputs))
    counts = ctypes.c_int(len(inputs)), ctypes.c_int(len(outputs))
    status = call("InvokeOp", frame.address, op, ctypes.byref(given), counts[0], ctypes.byref(made), counts[1])
    raise_status(status, "invoke")


def test_an_operator_of_the_runtime_is_called() -> None:
    """It writes to the library's values."""
    one, result = np.arange(3, dtype=np.float32), np.zeros(3, np.float32)
    _invoke(_create(b"Add", 2, 1), [one, one], [result])
    assert result.tolist() == [0, 2, 4]


def test_a_call_that_does_not_fit_is_refused() -> None:
    """By the numbers of its values, or by the shape of one."""
    one = np.arange(3, dtype=np.float32)
    with pytest.raises(InvalidArgument, match="made for 2 inputs and 1 outputs"):
        _invoke(_create(b"Add", 2, 1), [one], [one.copy()])
    with pytest.raises(InvalidArgument, match=r"output 0 of Add has shape \[3\], the library's value \[2\]"):
        _invoke(_create(b"Add", 2, 1), [one, one], [np.zeros(2, np.float32)])


def test_an_unknown_operator_is_named() -> None:
    """When it is made."""
    with pytest.raises(NotSupported, match=r"calls ai\.onnx\.Nothing of version 17"):
        _create(b"Nothing", 1, 1)


def test_shape_inference_reads_and_sets() -> None:
    """Inputs, attributes, outputs."""
    context = ShapeContext((make_info(DataType.FLOAT, (2, -1)),), attributes_of({"x": Attribute.of(3)}), {})
    handle = keep(context)
    assert ask("ShapeInferContext_GetInputCount", handle) == 1
    info = ask("ShapeInferContext_GetInputTypeShape", handle, 0)
    raise_status(call("ShapeInferContext_SetOutputTypeShape", handle, 0, info), "set")
    assert context.outputs == {0: (DataType.FLOAT, (2, -1), ("", ""))}
    assert ask("ShapeInferContext_GetAttribute", handle, ctypes.c_char_p(b"x")) == context.attributes["x"]
    with pytest.raises(InvalidArgument, match="'y' is defined"):
        ask("ShapeInferContext_GetAttribute", handle, ctypes.c_char_p(b"y"))
    with pytest.raises(InvalidArgument, match="input 1 of a node that has 1"):
        ask("ShapeInferContext_GetInputTypeShape", handle, 1)


def test_an_attribute_gives_its_name_and_type() -> None:
    """Numbers, texts and tensors; a kind that the interface has no number for is undefined."""
    numbers, tensor = Attribute.of((1, 2)), Attribute.of(Tensor.from_array(np.float32([1, 2]), "t"))
    handles = attributes_of({"axes": numbers, "weights": tensor})
    assert ask("OpAttr_GetName", handles["axes"], out=ctypes.c_char_p) == b"axes"
    assert [ask("OpAttr_GetType", handle, out=ctypes.c_int32) for handle in handles.values()] == [INTS, 8]


def test_an_attribute_gives_its_tensor() -> None:
    """As a value that the library releases; one of another kind is refused."""
    tensor = Attribute.of(Tensor.from_array(np.float32([1, 2]), "t"))
    handles = attributes_of({"axes": Attribute.of((1, 2)), "weights": tensor})
    found = find_value(ask("OpAttr_GetTensorAttributeAsOrtValue", handles["weights"])).array
    assert found is not None
    assert found.tolist() == [1, 2]
    with pytest.raises(InvalidArgument, match="'axes' has type INTS, not TENSOR"):
        ask("OpAttr_GetTensorAttributeAsOrtValue", handles["axes"])


def test_an_operator_of_the_runtime_takes_a_sequence() -> None:
    """One that the library made, beside tensors."""
    frame = Frame([], [], (), lambda index, given: given[0] or DataType.FLOAT, [])
    op = _create(b"SequenceAt", 2, 1)
    result = np.zeros(2, np.float32)
    sequence = make_container([np.float32([1, 2]), np.float32([3, 4])]).address
    given = (ctypes.c_uint64 * 2)(sequence, make_value(np.array(1)).address)
    made = (ctypes.c_uint64 * 1)(make_value(result).address)
    raise_status(
        call("InvokeOp", frame.address, op, ctypes.byref(given), ctypes.c_int(2), ctypes.byref(made), ctypes.c_int(1)), "x"
    )
    assert result.tolist() == [3, 4]
