"""Kernels that run one after the other, in machine code and in Python."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from support.ort_api import ask

from sardonyx.custom_ops.abi.chain import Chain, Link, RunChain, run_in_python
from sardonyx.custom_ops.abi.statuses import make_status
from sardonyx.custom_ops.abi.table import shared_api
from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidArgument, InvalidGraph

COMPUTE = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


@COMPUTE
def _add_one(kernel: int | None, context: int) -> int | None:
    value = ask("KernelContext_GetInput", context, 0)
    info = ask("GetTensorTypeAndShape", value)
    count = ask("GetTensorShapeElementCount", info)
    dims = (ctypes.c_int64 * 1)(count)
    out = ask("KernelContext_GetOutput", context, 0, ctypes.byref(dims), 1)
    source, target = ask("GetTensorData", value), ask("GetTensorMutableData", out)
    for index in range(count):
        number = ctypes.c_float.from_address(source + 4 * index).value
        ctypes.c_float.from_address(target + 4 * index).value = number + 1
    return None


@COMPUTE
def _refuse(kernel: int | None, context: int) -> int | None:
    return make_status(2, "no")


@COMPUTE
def _make_nothing(kernel: int | None, context: int) -> int | None:
    return None


RUNNERS: list[RunChain] = [shared_api().run, run_in_python]


def _chain(run: RunChain, *functions: Any) -> Chain:
    links = [
        Link(
            ctypes.cast(function, ctypes.c_void_p).value or 0,
            0,
            True,
            (index,),
            (index + 1,),
            (0,),
            lambda output, types: DataType.FLOAT,
            f"step {index}",
        )
        for index, function in enumerate(functions)
    ]
    return Chain(links, (0,), (len(functions),), run)


@pytest.mark.parametrize("run", RUNNERS)
def test_what_one_makes_the_next_reads(run: RunChain) -> None:
    """For sizes that change from run to run, 40 kernels long."""
    chain = _chain(run, *[_add_one] * 40)
    for size in (3, 5, 5, 0, 3):
        (result,) = chain.run([np.arange(size, dtype=np.float32)])
        assert result is not None
        assert result.tolist() == [index + 40 for index in range(size)]


@pytest.mark.parametrize("run", RUNNERS)
def test_a_status_names_the_kernel(run: RunChain) -> None:
    """The kernels after it do not run."""
    with pytest.raises(InvalidArgument, match="step 1: no"):
        _chain(run, _add_one, _refuse, _add_one).run([np.zeros(2, np.float32)])


@pytest.mark.parametrize("run", RUNNERS)
def test_an_output_that_is_not_made_is_an_error(run: RunChain) -> None:
    """Also where a run before made it."""
    chain = _chain(run, _make_nothing)
    with pytest.raises(InvalidGraph, match="step 0: an output that is read is not made"):
        chain.run([np.zeros(2, np.float32)])


def test_a_closed_chain_leaves_no_addresses() -> None:
    """Its values and frames are unknown."""
    from sardonyx.custom_ops.abi import frame, values

    before = len(frame._FRAMES), len(values._VALUES)
    chain = _chain(run_in_python, _add_one)
    chain.close()
    assert (len(frame._FRAMES), len(values._VALUES)) == before
