"""Columns added up to images."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.emit.window import WindowAxis, axis_words
from sardonyx.codegen.kernels.images.fold_columns import write_fold_columns
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.mark.parametrize("size", [1, 2, 15, 16, 17, 40])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_each_element_counts_its_windows(target: Target, size: int, stride: int) -> None:
    """Columns of ones: as many as there are taps that meet an element, with padding of 1."""
    engine, module = Engine(target), Module(target)
    write_fold_columns(module, "fold", F32, 1)
    engine.add(module)
    places = (size + 2 - 2) // stride + 1
    y = np.full((2, size), -7, np.float32)
    axis = WindowAxis(size, places, stride, 1, 1, 2, 1, 1)
    call(engine, "fold", [np.ones((2, 2, places), np.float32), y], axis_words([axis]), 0, 2)
    wanted = np.zeros(size + 2 + stride)
    for place in range(places):
        wanted[place * stride : place * stride + 2] += 1
    np.testing.assert_array_equal(y, np.tile(wanted[1 : size + 1], (2, 1)))
