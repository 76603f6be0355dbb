"""Finding and taking elements: nothing is written behind what was found."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import BOOL, F16, F32, I8, I32
from sardonyx.codegen.kernels.select import found_block, write_found, write_nonzero, write_taken
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """Kernels for elements of several sizes."""
    module = Module(target)
    for name, kind in {"float32": F32, "float16": F16, "int8": I8, "bool": BOOL}.items():
        write_nonzero(module, f"nonzero_{name}", kind, 2)
        write_found(module, f"found_{name}", kind)
    write_nonzero(module, "chosen", BOOL, 1)
    write_taken(module, "taken", I32, single=False)
    write_taken(module, "taken_single", I32, single=True)
    engine = Engine(target)
    engine.add(module)
    return engine


@pytest.mark.parametrize("name", ["float32", "float16", "int8", "bool"])
@pytest.mark.parametrize("inner", [1, 15, 16, 17, 37, 64])
def test_coordinates_of_what_is_not_zero(engine: Engine, name: str, inner: int) -> None:
    """NaN is found, and -0 is not."""
    x = np.random.default_rng(inner).integers(-1, 2, (5, inner)).astype(name)
    if name.startswith("float"):
        x[0, 0], x[-1, -1] = np.nan, -0.0
    wanted = np.array(np.nonzero(x))
    result, length = np.full(wanted.size + 1, -7), np.zeros(1, np.int64)
    block, counts = max(inner * 2 - 1, 3), np.zeros(5 * inner, np.int64)
    blocks = -(-x.size // block)
    call(engine, f"found_{name}", [x, counts], [x.size, block], 0, blocks)
    call(engine, f"nonzero_{name}", [x, counts, result, length], [x.size, block, blocks, inner, 5, 1], 0, blocks)
    np.testing.assert_array_equal(result[:-1].reshape(wanted.shape), wanted)
    assert (length[0], result[-1]) == (wanted.shape[1], -7)


@pytest.mark.parametrize("count", [0, 1, 16, 17, 100])
def test_places_of_conditions(engine: Engine, count: int) -> None:
    """In order."""
    conditions = np.random.default_rng(count).random(count) < 0.4
    wanted = np.flatnonzero(conditions)
    result, length, counts = np.full(wanted.size + 1, -7), np.zeros(1, np.int64), np.zeros(1, np.int64)
    call(engine, "found_bool", [conditions, counts], [count, found_block(count)])
    call(engine, "chosen", [conditions, counts, result, length], [count, found_block(count), 1, max(count, 1)])
    np.testing.assert_array_equal(result, [*wanted, -7])
    assert length[0] == wanted.size


@pytest.mark.parametrize(("name", "inner"), [("taken", 0), ("taken", 1), ("taken", 19), ("taken", 77), ("taken_single", 1)])
def test_slices_at_places(engine: Engine, name: str, inner: int) -> None:
    """The result is dense; there may be fewer places than there are blocks for."""
    data, places = np.arange(3 * 6 * inner, dtype=np.int32).reshape(3, 6, inner), np.array([5, 0, 2])
    result = np.zeros((3, 3, inner), np.int32)
    call(engine, name, [data, places, np.array([3]), result], [6, inner, 2, 3], 0, 9)
    np.testing.assert_array_equal(result, data[:, places])
