"""Greatest elements of windows, and their places."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.emit.window import WindowAxis, axis_words
from sardonyx.codegen.kernels.images.pool_places import write_pool_places
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


def _run(target: Target, x: Array, taps: int, begin: int, places: int) -> tuple[Array, Array]:
    engine, module = Engine(target), Module(target)
    write_pool_places(module, "pool", F32, 1)
    engine.add(module)
    y, indices = np.full((len(x), places), -7, np.float32), np.full((len(x), places), -7)
    axis = WindowAxis(x.shape[1], places, 1, 1, begin, taps, 1, 1)
    call(engine, "pool", [x, y, indices], [*axis_words([axis]), 1], 0, len(x))
    return y, indices


@pytest.mark.parametrize("places", [1, 15, 16, 17, 40])
def test_against_numpy(target: Target, places: int) -> None:
    """Of equal elements the first counts; places count in all planes."""
    x = np.random.default_rng(places).integers(0, 4, (3, places + 2)).astype(np.float32)
    y, indices = _run(target, x, 3, 0, places)
    windows = np.lib.stride_tricks.sliding_window_view(x, 3, axis=1)
    np.testing.assert_array_equal(y, windows.max(axis=2))
    first = windows.argmax(axis=2) + np.arange(places) + np.arange(3)[:, None] * x.shape[1]
    np.testing.assert_array_equal(indices, first)


def test_windows_of_no_element(target: Target) -> None:
    """They give the least number, at the first element."""
    y, indices = _run(target, np.array([[1, 2]], np.float32), 1, 2, 5)
    assert y.tolist() == [[-np.inf, -np.inf, 1, 2, -np.inf]]
    assert indices.tolist() == [[0, 0, 0, 1, 0]]
