"""Sums of cosines."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F64
from sardonyx.codegen.kernels.signal.windows import WINDOW_BLOCK, write_window
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.mark.parametrize("count", [1, 7, 8, 9, WINDOW_BLOCK + 1])
def test_against_numpy(target: Target, count: int) -> None:
    """A constant, a cosine, and one of half the period."""
    engine, module = Engine(target), Module(target)
    write_window(module, "window", F64)
    engine.add(module)
    y = np.full(count, 7.0)
    call(engine, "window", [y], [count, count, 0.5, 2.0, -3.0], 0, -(-count // WINDOW_BLOCK))
    angle = 2 * np.pi * np.arange(count) / count
    np.testing.assert_allclose(y, 0.5 + 2 * np.cos(angle) - 3 * np.cos(2 * angle), atol=1e-14)
