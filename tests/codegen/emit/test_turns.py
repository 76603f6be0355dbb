"""Sines and cosines of fractions of a turn."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.turns import cosine_and_sine
from sardonyx.codegen.emit.types import F64, I64
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """A kernel of parts 0 to n of the turn."""
    engine, module = Engine(target), Module(target)
    with module.kernel("turns") as b:
        whole = b.param(0)
        for k, span in b.vectors(0, whole + 1, F64):
            cosine, sine = cosine_and_sine(b, b.iota(I64, span.lanes) + k, whole)
            b.buffer(0, F64).store(cosine, k, span)
            b.buffer(1, F64).store(sine, k, span)
    engine.add(module)
    return engine


def _run(engine: Engine, whole: int) -> tuple[Array, Array]:
    found = np.full(whole + 1, 7.0), np.full(whole + 1, 7.0)
    call(engine, "turns", found, [whole])
    return found


@pytest.mark.parametrize("whole", [1, 2, 3, 7, 8, 360, 1009, 65536])
def test_against_numpy(engine: Engine, whole: int) -> None:
    """Within the rounding of NumPy's angle."""
    angle = 2 * np.pi * np.arange(whole + 1) / whole
    cosine, sine = _run(engine, whole)
    np.testing.assert_allclose(cosine, np.cos(angle), rtol=0, atol=1e-15)
    np.testing.assert_allclose(sine, np.sin(angle), rtol=0, atol=1e-15)


def test_quarters_are_exact(engine: Engine) -> None:
    """Ones and zeros."""
    cosine, sine = _run(engine, 8)
    assert cosine[::2].tolist() == [1, 0, -1, 0, 1]
    assert sine[::2].tolist() == [0, 1, 0, -1, 0]
