"""Run kernels on every instruction set level that this machine has."""

import ctypes
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from sardonyx.codegen.jit import Engine
from sardonyx.codegen.module import Module
from sardonyx.codegen.target import Target, available_levels, host_target
from sardonyx.dtypes import Array

Run = Callable[..., None]
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


@pytest.fixture(params=available_levels())
def target(request: pytest.FixtureRequest) -> Target:
    """Each level of this machine in turn."""
    return host_target(request.param)


@pytest.fixture
def run() -> Run:
    """Compile a module and call one of its kernels on arrays; float parameters are passed by their float64 bits."""

    def call(module: Module, symbol: str, arrays: Sequence[Array], params: Sequence[float] = (), begin: int = 0, end: int = 1) -> None:
        engine = Engine(module.target)
        engine.add(module)
        buffers = np.array([array.ctypes.data for array in arrays], np.int64)
        words = np.array([np.float64(p).view(np.int64) if isinstance(p, float) else p for p in params], np.int64)
        _KERNEL(engine.address(symbol))(buffers.ctypes.data, words.ctypes.data, begin, end)

    return call
