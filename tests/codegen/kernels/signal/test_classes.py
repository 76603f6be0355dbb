"""Classes drawn by the logarithms of their weights."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I32
from sardonyx.codegen.kernels.signal.classes import write_add_weights, write_draw_classes
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.mark.parametrize("classes", [1, 7, 8, 9, 100])
def test_sums_grow_to_the_sum_of_all_weights(target: Target, classes: int) -> None:
    """Of each row, relative to its greatest."""
    engine, module = Engine(target), Module(target)
    write_add_weights(module, "add", F32)
    engine.add(module)
    x = np.random.default_rng(0).standard_normal((3, classes), np.float32) * 5
    sums = np.empty(x.shape)
    call(engine, "add", [x, sums], [classes], 0, 3)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(sums, np.exp(exact - exact.max(axis=1, keepdims=True)).cumsum(axis=1), rtol=1e-13)


def test_a_class_is_the_first_whose_sum_exceeds_the_number(target: Target) -> None:
    """Which is even: a class without weight is never drawn, the others as often as their weight says."""
    engine, module = Engine(target), Module(target)
    write_draw_classes(module, "draw", I32)
    engine.add(module)
    found = np.empty((2, 5000), np.int32)
    sums = np.array([[0.0, 1.0, 1.0, 4.0], [2.0, 2.0, 2.0, 2.0]])
    call(engine, "draw", [np.array([7], np.uint64), sums, found], [found.size, 5000, 4], 0, 2)
    counts = np.bincount(found[0], minlength=4)
    assert counts[0] == counts[2] == 0
    assert abs(counts[1] - 1250) < 150
    assert (found[1] == 0).all()
