"""Elements that lie apart."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import of_dtype
from sardonyx.codegen.kernels.moves.places import PlacesParams, write_places
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array

KINDS = ["int8", "int16", "int32", "int64"]


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """An engine with the kernel of each size."""
    engine = Engine(target)
    for kind in KINDS:
        module = Module(target)
        write_places(module, kind, of_dtype(np.dtype(kind)))
        engine.add(module)
    return engine


def _same(engine: Engine, view: Array, grain: int) -> None:
    """A dense copy of a strided view of an array is what NumPy makes of it, and nothing is written behind it."""
    strides = [step // view.itemsize for step in view.strides]
    params = PlacesParams.of(list(zip(view.shape, strides, strict=True)), grain)
    found = np.full(view.size + 64, 99, view.dtype)
    call(engine, view.dtype.name, [view, found], params.words(), 0, params.tasks())
    np.testing.assert_array_equal(found[: view.size], view.reshape(-1))
    assert (found[view.size :] == 99).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("grain", [1, 100, 1 << 14])
def test_parts_of_arrays(engine: Engine, kind: str, grain: int) -> None:
    """Backwards, every so many-th, in any order of axes; of few elements and of many."""
    x = np.arange(7 * 11 * 300).astype(kind).reshape(7, 11, 300)
    for view in (
        x[::-1, ::-1, ::-1],
        x[:, :, ::7],
        x[:, 1::2, 5:3:-1],
        x.transpose(2, 0, 1),
        x[..., :3],
        x[:, :0],
        x[3, 2, 299::-1],
    ):
        _same(engine, view, grain)


@pytest.mark.parametrize("columns", [1, 2, 3, 4, 255, 256, 257, 511, 512, 513, 1025])
def test_tables_of_any_length(engine: Engine, columns: int) -> None:
    """Rows that a table holds, and such as are lines themselves."""
    _same(engine, np.arange(5 * columns, dtype=np.int32).reshape(5, columns)[:, ::-1], 1 << 14)


def test_more_dimensions_than_a_table_has(engine: Engine) -> None:
    """The others are walked one by one."""
    x = np.arange(4**6, dtype=np.int32).reshape((2,) * 12)
    _same(engine, x.transpose(*range(11, -1, -1)), 1 << 14)
    _same(engine, x[(slice(None, None, -1),) * 12], 1 << 14)
