"""Small transforms."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F64
from sardonyx.codegen.kernels.signal.butterflies import BUTTERFLIES, Complex, add, multiply, subtract
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.mark.parametrize("count", BUTTERFLIES)
def test_against_numpy(target: Target, count: int) -> None:
    """Transforms of a few numbers."""
    engine, module = Engine(target), Module(target)
    with module.kernel("butterfly") as b:
        x, y = b.buffer(0, F64), b.buffer(1, F64)
        for k, found in enumerate(BUTTERFLIES[count](b, [(x.load(2 * k), x.load(2 * k + 1)) for k in range(count)])):
            y.store(found[0], 2 * k)
            y.store(found[1], 2 * k + 1)
    engine.add(module)
    x = np.random.default_rng(count).standard_normal(count) + 1j * np.random.default_rng(0).standard_normal(count)
    y = np.zeros(count, np.complex128)
    call(engine, "butterfly", [x, y])
    np.testing.assert_allclose(y, np.fft.fft(x), atol=1e-14)


def test_arithmetic(target: Target) -> None:
    """Of 1 + 2i and 3 - 1i."""
    engine, module = Engine(target), Module(target)
    with module.kernel("arithmetic") as b:
        left: Complex = (b.buffer(0, F64).load(0), b.buffer(0, F64).load(1))
        right: Complex = (b.buffer(0, F64).load(2), b.buffer(0, F64).load(3))
        for place, found in enumerate((add(left, right), subtract(left, right), multiply(b, left, right))):
            for part, one in enumerate(found):
                b.buffer(1, F64).store(one, 2 * place + part)
    engine.add(module)
    y = np.zeros(6)
    call(engine, "arithmetic", [np.array([1.0, 2, 3, -1]), y])
    assert y.tolist() == [4, 1, -2, 3, 5, 5]
