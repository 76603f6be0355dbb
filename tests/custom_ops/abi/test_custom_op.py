"""Reading OrtCustomOp as far as its version goes."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

from sardonyx.custom_ops.abi.custom_op import CustomOp
from sardonyx.custom_ops.definition import NEWEST
from sardonyx.errors import Fail

NAME = ctypes.create_string_buffer(b"Mine")
_NAME = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(lambda op: ctypes.addressof(NAME))
_COUNT = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p)(lambda op: 1)
_TYPE = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t)(lambda op, index: 1)
_WRONG = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_size_t)(lambda op, index: 999)


def _operator(version: int, beyond: int, **callbacks: Any) -> ctypes.Array[ctypes.c_uint64]:
    """A structure; words that its version does not have are `beyond`."""
    names = ["CreateKernel", "GetName", "GetExecutionProviderType", "GetInputType", "GetInputTypeCount", "GetOutputType"]
    names += ["GetOutputTypeCount", "KernelCompute", "KernelDestroy"]
    given = {"CreateKernel": _NAME, "GetName": _NAME, "GetInputType": _TYPE, "GetInputTypeCount": _COUNT, "KernelCompute": _NAME}
    given |= callbacks
    words = [ctypes.cast(given[name], ctypes.c_void_p).value or 0 if given.get(name) else 0 for name in names]
    return (ctypes.c_uint64 * 26)(version, *words, *[beyond] * 16)


def test_fields_beyond_the_version_are_not_read() -> None:
    """An operator of version 1 may have anything behind them."""
    made = _operator(1, 0xDEAD)
    found = CustomOp(ctypes.addressof(made), "libx")
    assert (found.name, found.versions, found.provider) == ("Mine", (1, NEWEST), "")
    assert not found.has("KernelComputeV2")
    assert [formal.dtype for formal in found.inputs()] == [1]


def test_a_newer_version_is_refused() -> None:
    """It may have what is not known here."""
    made = _operator(999, 0)
    with pytest.raises(Fail, match="libx: an operator is for version 999"):
        CustomOp(ctypes.addressof(made), "libx")


def test_an_operator_without_compute_is_refused() -> None:
    """The message names both forms."""
    made = _operator(16, 0, KernelCompute=None)
    with pytest.raises(Fail, match="neither KernelCompute nor KernelComputeV2"):
        CustomOp(ctypes.addressof(made), "libx")


def test_an_unknown_type_is_refused() -> None:
    """The message names operator and library."""
    made = _operator(1, 0, GetInputType=_WRONG)
    with pytest.raises(Fail, match="libx: the operator Mine describes its inputs wrongly: 999"):
        CustomOp(ctypes.addressof(made), "libx").inputs()
