"""The functions in machine code answer as those in Python do."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest
from support.ort_api import ask, call

from sardonyx.custom_ops.abi.frame import Frame
from sardonyx.custom_ops.abi.native import FALLBACKS, native_functions
from sardonyx.custom_ops.abi.statuses import raise_status
from sardonyx.custom_ops.abi.table import filled_functions
from sardonyx.custom_ops.abi.values import blank_value, make_value
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument


def _frame() -> Frame:
    given = blank_value()
    given.set_array(np.zeros((2, 3), np.float32))
    return Frame([given, None], [blank_value(), None], [], lambda index, types: DataType.INT64, [])


def test_they_are_functions_of_the_table() -> None:
    """Each has one in Python beside it, and so has each fallback."""
    _, natives, _ = native_functions()
    assert natives.keys() <= filled_functions().keys()
    assert set(FALLBACKS) <= filled_functions().keys()


def test_inputs_and_outputs_are_found() -> None:
    """0 for one left out; a wrong index is an error from Python."""
    frame = _frame()
    assert frame.inputs[0] is not None
    assert [ask("KernelContext_GetInput", frame.address, index) for index in (0, 1)] == [frame.inputs[0].address, 0]
    assert [ask(f"KernelContext_Get{kind}Count", frame.address) for kind in ("Input", "Output")] == [2, 2]
    with pytest.raises(InvalidArgument, match="input 2 of a node that has 2"):
        ask("KernelContext_GetInput", frame.address, 2)
    dims = (ctypes.c_int64 * 2)(4, 5)
    assert ask("KernelContext_GetOutput", frame.address, 1, ctypes.byref(dims), 2) == 0
    made = ask("KernelContext_GetOutput", frame.address, 0, ctypes.byref(dims), 2)
    assert made == ask("KernelContext_GetOutput", frame.address, 0, ctypes.byref(dims), 2)
    assert frame.outputs[0] is not None
    assert frame.outputs[0].shape == (4, 5)


@pytest.mark.parametrize("owned", [False, True])
def test_types_and_shapes_are_read(owned: bool) -> None:
    """Of a value of the frame in place, of a value that the library made by a copy."""
    array = np.zeros((2, 3), np.float32)
    value = make_value(array) if owned else _frame().inputs[0]
    assert value is not None
    info = ask("GetTensorTypeAndShape", value.address)
    assert (info != value.address) == owned
    dims = (ctypes.c_int64 * 2)()
    assert ask("GetTensorElementType", info, out=ctypes.c_int32) == DataType.FLOAT
    assert (ask("GetDimensionsCount", info), ask("GetTensorShapeElementCount", info)) == (2, 6)
    assert call("GetDimensions", info, ctypes.byref(dims), 2) in (None, 0)
    assert list(dims) == [2, 3]
    call("ReleaseTensorTypeAndShapeInfo", info)


def test_strings_have_no_data() -> None:
    """The error comes from Python."""
    with pytest.raises(InvalidArgument, match="use GetStringTensorContent"):
        ask("GetTensorMutableData", make_value(np.array(["a"], object)).address)


@pytest.mark.parametrize("name", sorted(set(native_functions()[1]) - {"ReleaseTensorTypeAndShapeInfo"}))
def test_null_is_an_error_not_a_crash(name: str) -> None:
    """NULL for what is asked, and for everything else, gives a status; so does NULL for where the answer goes."""
    given = _frame()
    place = given.address if name.startswith("KernelContext") else given.inputs[0].address  # type: ignore[union-attr]
    for first in (0, place):
        status = call(name, first, 0, 2 if first and name == "GetDimensions" else 0, 0, 0)
        with pytest.raises(InvalidArgument, match="NULL"):
            raise_status(status, name)


def test_null_for_the_dimensions_of_an_output_is_an_error() -> None:
    """Where it has any: a scalar needs none."""
    frame = _frame()
    with pytest.raises(InvalidArgument, match="NULL for the 2 dimensions of output 0"):
        ask("KernelContext_GetOutput", frame.address, 0, 0, 2)
    assert ask("KernelContext_GetOutput", frame.address, 0, 0, 0) != 0


def test_a_scalar_has_no_dimensions_to_write() -> None:
    """NULL is then right: an empty vector of C++ has no address."""
    value = make_value(np.zeros((), np.float32))
    assert call("GetDimensions", value.address, 0, 0) in (None, 0)


def test_the_status_for_null_lasts() -> None:
    """It is one for all calls, whoever releases it."""
    for _ in range(2):
        status = call("GetTensorElementType", 0, 0)
        call("ReleaseStatus", ctypes.c_void_p(status))
        assert call("GetErrorCode", ctypes.c_void_p(status), returns=ctypes.c_int) == 2
