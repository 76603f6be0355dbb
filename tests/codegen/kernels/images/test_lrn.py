"""Normalization over neighbouring channels, against float64."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.images.lrn import BLOCK, write_lrn
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """The kernel."""
    module = Module(target)
    write_lrn(module, "lrn")
    engine = Engine(target)
    engine.add(module)
    return engine


@pytest.mark.parametrize("inner", [1, 15, 16, 17, BLOCK + 5])
@pytest.mark.parametrize(("before", "behind"), [(0, 0), (0, 1), (2, 2), (5, 5)])
def test_channels_around(engine: Engine, inner: int, before: int, behind: int) -> None:
    """As many as there are at the ends."""
    x = np.random.default_rng(inner).standard_normal((2, 5, inner)).astype(np.float32)
    y = np.full_like(x, -7)
    call(engine, "lrn", [x, y], [5, inner, before, behind, 0.3, 0.6, 2.0], 0, 2 * -(-inner // BLOCK))
    wide = x.astype(np.float64)
    totals = [np.square(wide[:, max(c - before, 0) : c + behind + 1]).sum(axis=1) for c in range(5)]
    np.testing.assert_allclose(y, wide * (2 + 0.3 * np.stack(totals, axis=1)) ** -0.6, rtol=1e-6)
