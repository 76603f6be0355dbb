"""Tables of elements and weights, and resampling by them."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I8
from sardonyx.codegen.kernels.resize import CUBIC, LINEAR, NEAREST, ResizeParams, TableWords, write_resize, write_table
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Tables of all kinds, and kernels for one and two axes."""
    module = Module(target)
    for taps in (NEAREST, LINEAR, CUBIC):
        write_table(module, f"table_{taps}", taps)
        for axes in (1, 2):
            for single in (False, True):
                element = I8 if taps == NEAREST else F32
                write_resize(module, f"resize_{taps}_{axes}_{single}", element, taps, axes, single=single)
    engine = Engine(target)
    engine.add(module)
    return engine


def _table(engine: Engine, taps: int, words: TableWords) -> tuple[Array, Array]:
    index, weight = np.full((taps, words.output), -1, np.int32), np.full((taps, words.output), np.nan, np.float32)
    call(engine, f"table_{taps}", [index, weight], words.words())
    return index, weight


def test_the_nearest_elements(engine: Engine) -> None:
    """Rounded up or down after a bias, inside the axis always."""
    index, _ = _table(engine, NEAREST, TableWords(3, 7, divisor=2.0))
    assert index.tolist() == [[0, 0, 1, 1, 2, 2, 2]]
    index, _ = _table(engine, NEAREST, TableWords(3, 7, shift=0.5, divisor=2.0, back=0.5, bias=-0.5, upwards=True))
    assert index.tolist() == [[0, 0, 1, 1, 2, 2, 2]]
    index, _ = _table(engine, NEAREST, TableWords(5, 3, divisor=-1e-30))
    assert index.tolist() == [[0, 0, 0]]
    index, _ = _table(engine, NEAREST, TableWords(5, 3, shift=1.0, divisor=1e-38))
    assert index.tolist() == [[4, 4, 4]]


def test_weights_of_linear_and_cubic(engine: Engine) -> None:
    """A quarter and three quarters; Keys' kernel at one half."""
    index, weight = _table(engine, LINEAR, TableWords(2, 4, shift=0.5, divisor=2.0, back=0.5))
    assert index.tolist() == [[0, 0, 0, 1], [0, 1, 1, 1]]
    assert weight.tolist() == [[0.25, 0.75, 0.25, 0.75], [0.75, 0.25, 0.75, 0.25]]
    index, weight = _table(engine, CUBIC, TableWords(4, 1, offset=1.5, coefficient=-0.75))
    assert index.ravel().tolist() == [0, 1, 2, 3]
    assert weight.ravel().tolist() == [-0.09375, 0.59375, 0.59375, -0.09375]


def test_outside_weighs_nothing(engine: Engine) -> None:
    """The others share its weight."""
    index, weight = _table(engine, LINEAR, TableWords(2, 1, offset=-0.25, inside_only=True))
    assert (index.ravel().tolist(), weight.ravel().tolist()) == ([0, 0], [0.0, 1.0])


@pytest.mark.parametrize("taps", [NEAREST, LINEAR, CUBIC])
@pytest.mark.parametrize("inner", [1, 5, 16, 35])
def test_axes_are_resampled(engine: Engine, taps: int, inner: int) -> None:
    """One and two axes, in tasks of any size, and nothing beside the result is written."""
    rng = np.random.default_rng(0)
    kind = np.dtype(np.int8 if taps == NEAREST else np.float32)
    source = (rng.standard_normal((2, 4, 5, inner)) * 9).astype(kind)
    sizes, outputs = (4, 5), (7, 37)
    tables = [
        (rng.integers(0, size, (taps, output)).astype(np.int32), rng.standard_normal((taps, output)).astype(np.float32))
        for size, output in zip(sizes, outputs, strict=True)
    ]
    for axes in (1, 2):
        given = source if axes == 2 else source.reshape(8, 5, inner)
        wanted = given.astype(np.float64)
        for axis, (index, weight) in enumerate(tables[-axes:], 1):
            taken = np.stack([np.take(wanted, row, axis) for row in index])
            shape = (taps, *(-1 if place == axis else 1 for place in range(wanted.ndim)))
            wanted = taken[0] if taps == NEAREST else (taken * weight.reshape(shape)).sum(0)
        guarded = np.full(wanted.size + 128, 77, kind)
        params = ResizeParams(given.shape[0], sizes[-axes:], outputs[-axes:], inner, 8)
        buffers = [array for index, weight in tables[-axes:] for array in ([index] if taps == NEAREST else [index, weight])]
        for task in range(params.tasks()):
            for single in {False, True} if inner == 1 else {False}:
                call(engine, f"resize_{taps}_{axes}_{single}", [given, guarded[64:-64], *buffers], params.words(), task, task + 1)
        np.testing.assert_allclose(guarded[64:-64].reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-4)
        assert (guarded[:64] == 77).all()
        assert (guarded[-64:] == 77).all()
