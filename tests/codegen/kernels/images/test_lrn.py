"""Normalization over neighbouring channels, against float64."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.kernels.images.lrn import LrnParams, write_lrn
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


@pytest.mark.parametrize("inner", [1, 15, 16, 17, 4101])
@pytest.mark.parametrize(("before", "behind"), [(0, 0), (0, 1), (2, 2), (5, 5)])
def test_channels_around(engine: Engine, inner: int, before: int, behind: int) -> None:
    """As many as there are at the ends."""
    check(engine, (2, 5, inner), before, behind)


def test_blocks_of_channels(engine: Engine) -> None:
    """An image of more channels than a task has: those around the first and the last of a task are in others."""
    assert LrnParams(1, 70_000, 3, 4, 5).tasks() > 1
    check(engine, (2, 70_000, 3), 4, 5)


def check(engine: Engine, shape: tuple[int, int, int], before: int, behind: int) -> None:
    """Compare with float64."""
    x = np.random.default_rng(shape[2]).standard_normal(shape).astype(np.float32)
    y = np.full_like(x, -7)
    params = LrnParams(*shape, before, behind)
    call(engine, "lrn", [x, y], [*params.words(), 0.3, 0.6, 2.0], 0, params.tasks())
    sums = np.cumsum(np.pad(np.square(x.astype(np.float64)), ((0, 0), (before + 1, behind), (0, 0))), axis=1)
    totals = sums[:, before + behind + 1 :] - sums[:, : shape[1]]
    np.testing.assert_allclose(y, x * (2 + 0.3 * totals) ** -0.6, rtol=1e-6)
