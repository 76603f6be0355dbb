"""What a kernel may ask while it is made; attributes are asked for by the library in C too."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from support.custom_sites import site_of
from support.ort_api import ask, call

from sardonyx.custom_ops.abi.entries.kernels import info_of_type
from sardonyx.custom_ops.abi.entries.memory import default_allocator
from sardonyx.custom_ops.abi.handles import keep
from sardonyx.custom_ops.abi.node_info import NodeInfo
from sardonyx.custom_ops.abi.statuses import raise_status
from sardonyx.custom_ops.abi.values import find_value
from sardonyx.dtypes import DataType
from sardonyx.errors import Fail, InvalidArgument
from sardonyx.ir import TensorType
from sardonyx.ir.shape import symbol

TYPE = TensorType(DataType.FLOAT, (symbol("n"), 3))
INFO = keep(
    NodeInfo(site_of(TYPE, TYPE, constants={1: np.ones((2, 3), np.float32)}, axis=2, scale=0.5, names=["a", "ü"], text="t"), 2)
)


def _text(name: str, *arguments: int) -> bytes:
    size, buffer = ctypes.c_size_t(32), ctypes.create_string_buffer(32)
    raise_status(call(name, INFO, *arguments, ctypes.byref(buffer), ctypes.byref(size)), name)
    return buffer.value


def test_names_are_given() -> None:
    """Of node, operator, domain, inputs and outputs."""
    assert [_text(f"KernelInfo_Get{what}") for what in ("NodeName", "OperatorType", "OperatorDomain")] == [b"n", b"Op", b"mine"]
    assert [_text("KernelInfo_GetInputName", 1), _text("KernelInfo_GetOutputName", 0)] == [b"x1", b"y0"]
    assert ask("KernelInfo_GetOperatorSinceVersion", INFO, out=ctypes.c_int32) == 2
    assert [ask(f"KernelInfo_Get{what}Count", INFO) for what in ("Input", "Output")] == [2, 1]
    with pytest.raises(InvalidArgument, match="output 1 of a node that has 1"):
        _text("KernelInfo_GetOutputName", 1)


def test_numbers_and_texts_are_given() -> None:
    """One that is not there is an error."""
    assert ask("KernelInfoGetAttribute_float", INFO, ctypes.c_char_p(b"scale"), out=ctypes.c_float) == 0.5
    assert ask("KernelInfoGetAttribute_int64", INFO, ctypes.c_char_p(b"axis"), out=ctypes.c_int64) == 2
    with pytest.raises(Fail, match="no attribute with name: 'x'"):
        ask("KernelInfoGetAttribute_int64", INFO, ctypes.c_char_p(b"x"), out=ctypes.c_int64)


def test_lists_of_texts_are_given() -> None:
    """In memory of the allocator."""
    count, out, name = ctypes.c_size_t(), ctypes.c_uint64(), ctypes.c_char_p(b"names")
    function = "KernelInfoGetAttributeArray_string"
    raise_status(call(function, INFO, name, default_allocator(), None, ctypes.byref(count)), function)
    raise_status(call(function, INFO, name, default_allocator(), ctypes.byref(out), ctypes.byref(count)), function)
    texts = list((ctypes.c_char_p * count.value).from_address(out.value))
    assert texts == [b"a", "ü".encode()]
    for address in (*(ctypes.c_uint64 * 2).from_address(out.value), out.value):
        raise_status(call("AllocatorFree", default_allocator(), address), "free")


def test_types_are_given() -> None:
    """With -1 and a name for an unknown size; nothing is known of the output."""
    info = find_value(ask("KernelInfo_GetInputTypeInfo", INFO, 0))
    assert (info.dtype, info.shape, info.symbols) == (DataType.FLOAT, (-1, 3), ("n", ""))
    assert find_value(ask("KernelInfo_GetOutputTypeInfo", INFO, 0)).dtype is DataType.UNDEFINED
    assert info_of_type(None).shape == ()


def test_constant_inputs_are_given() -> None:
    """Others are NULL."""
    flag, value = ctypes.c_int32(), ctypes.c_uint64()
    for index, expected in ((0, 0), (1, 1)):
        raise_status(call("KernelInfoGetConstantInput_tensor", INFO, index, ctypes.byref(flag), ctypes.byref(value)), "constant")
        assert (flag.value, bool(value.value)) == (expected, bool(expected))


def test_a_copy_is_an_info() -> None:
    """It lives by itself; allocators and loggers are those of all."""
    copy = ask("CopyKernelInfo", INFO)
    call("ReleaseKernelInfo", copy)
    assert ask("KernelInfoGetAllocator", INFO, ctypes.c_int(0)) == default_allocator()
    assert ask("KernelInfo_GetLogger", INFO)
    with pytest.raises(InvalidArgument, match="released or none"):
        ask("KernelInfo_GetInputCount", copy)
