"""Distinct slices: their order, first places, counts, and the place of each entry."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I64
from sardonyx.codegen.kernels.distinct import work_bytes, write_distinct
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Elements and slices, ascending and by first places."""
    module = Module(target)
    write_distinct(module, "elements", F32, single=True, is_sorted=True)
    write_distinct(module, "elements_first", F32, single=True, is_sorted=False)
    write_distinct(module, "slices", I64, single=False, is_sorted=True)
    write_distinct(module, "slices_first", I64, single=False, is_sorted=False)
    engine = Engine(target)
    engine.add(module)
    return engine


def _run(engine: Engine, name: str, x: Array) -> tuple[Array, Array, Array, Array]:
    outer, count, inner = x.shape
    kind = F32 if x.dtype == np.float32 else I64
    values, vectors, length = np.zeros_like(x), [np.zeros(count, np.int64) for _ in range(3)], np.zeros(1, np.int64)
    buffers = [x, values, *vectors, length, np.zeros(count * work_bytes(kind) + 8, np.uint8)]
    call(engine, name, buffers, [outer, count, inner], 0, outer * inner + 1)
    total = int(length[0])
    firsts, inverse, counts = vectors
    return values.reshape(-1)[: outer * total * inner].reshape(outer, total, inner), firsts[:total], inverse, counts[:total]


@pytest.mark.parametrize("count", [1, 2, 39, 500])
def test_elements(engine: Engine, count: int) -> None:
    """As NumPy finds them; zeros of both signs are one, each NaN is another, and comes last."""
    x = np.random.default_rng(count).integers(-5, 5, count).astype(np.float32)
    found = _run(engine, "elements", x.reshape(1, -1, 1))
    for one, other in zip(found, np.unique(x, return_index=True, return_inverse=True, return_counts=True), strict=True):
        np.testing.assert_array_equal(one.reshape(-1), other)
    special = np.array([np.nan, -0.0, 1, 0.0, np.nan], np.float32)
    values, firsts, inverse, counts = _run(engine, "elements", special.reshape(1, -1, 1))
    np.testing.assert_array_equal(values.reshape(-1), [-0.0, 1, np.nan, np.nan])
    assert (firsts.tolist(), inverse.tolist(), counts.tolist()) == ([1, 2, 0, 4], [2, 0, 1, 0, 3], [2, 1, 1, 1])


def test_in_the_order_of_first_places(engine: Engine) -> None:
    """Whatever their size."""
    x = np.array([3, 1, 3, 2, 1], np.float32).reshape(1, -1, 1)
    values, firsts, inverse, counts = _run(engine, "elements_first", x)
    assert values.reshape(-1).tolist() == [3, 1, 2]
    assert (firsts.tolist(), inverse.tolist(), counts.tolist()) == ([0, 1, 3], [0, 1, 0, 2, 1], [2, 2, 1])


@pytest.mark.parametrize("shape", [(1, 60, 2), (2, 60, 1), (2, 7, 3), (1, 5, 40)])
def test_slices(engine: Engine, shape: tuple[int, ...]) -> None:
    """Compared element by element, of all dimensions around the axis."""
    x = np.random.default_rng(0).integers(-1, 2, shape)
    found = _run(engine, "slices", x)
    wanted = np.unique(x, return_index=True, return_inverse=True, return_counts=True, axis=1)
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(one, other.reshape(one.shape))
    first = _run(engine, "slices_first", x)
    np.testing.assert_array_equal(first[1], np.sort(wanted[1]))
    np.testing.assert_array_equal(first[0][:, first[2]], x)
