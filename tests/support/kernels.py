"""Call compiled kernels on arrays."""

import ctypes
from collections.abc import Sequence

import numpy as np

from sardonyx.codegen.run.jit import Engine
from sardonyx.dtypes import Array

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
"""The signature of a kernel."""


def call(
    engine: Engine, symbol: str, arrays: Sequence[Array], params: Sequence[int | float] = (), begin: int = 0, end: int = 1
) -> None:
    """Run the tasks [begin, end) of a kernel; float parameters are passed by their float64 bits."""
    buffers = np.array([array.ctypes.data for array in arrays], np.int64)
    words = np.array([int(np.float64(p).view(np.int64)) if isinstance(p, float) else p for p in params], np.int64)
    KERNEL(engine.address(symbol))(buffers.ctypes.data, words.ctypes.data, begin, end)
