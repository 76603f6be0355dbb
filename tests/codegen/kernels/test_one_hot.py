"""One-hot planes."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I32, I64
from sardonyx.codegen.kernels.one_hot import write_one_hot
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.mark.parametrize("wraps", [True, False])
@pytest.mark.parametrize(("outer", "depth", "inner"), [(5, 3, 1), (2, 7, 3), (1, 40, 17), (3, 0, 2)])
def test_places_are_set(target: Target, outer: int, depth: int, inner: int, wraps: bool) -> None:
    """An index outside the axis sets none; a negative one counts from the end where it is told to."""
    module = Module(target)
    write_one_hot(module, "one_hot", I32, I64, wraps=wraps)
    engine = Engine(target)
    engine.add(module)
    indices = np.random.default_rng(0).integers(-depth - 2, depth + 2, (outer, inner))
    result = np.full((outer, depth, inner), 9, np.int32)
    call(engine, "one_hot", [indices, np.array([5, 6], np.int32), result], [depth, inner], 0, outer)
    places = np.where(indices < 0, indices + depth, indices) if wraps else indices
    np.testing.assert_array_equal(result, np.where(places[:, None] == np.arange(depth)[:, None], 6, 5))
