"""Packing beforehand; packing in the run gives the same."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.gemm import tiling
from sardonyx.codegen.kernels.pack import PackParams, pack_columns, pack_rows, transpose, write_pack
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target
from sardonyx.dtypes import Array


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """The kernel for panels as the product's."""
    module = Module(target)
    write_pack(module, "pack", tiling(target).panel)
    engine = Engine(target)
    engine.add(module)
    return engine


def _pack(engine: Engine, matrices: Array) -> Array:
    """Pack a batch (batch, K, N) that lies in memory in any way; guard elements behind the panels must stay."""
    width = tiling(engine.target).panel
    batch, K, N = matrices.shape
    step, row, column = (stride // 4 for stride in matrices.strides)
    panels = np.full(batch * -(-N // width) * K * width + 64, 7, np.float32)
    params = PackParams(K, N, row, column, step)
    call(engine, "pack", [matrices, panels], params.words(), 0, params.parts(width, batch))
    assert (panels[-64:] == 7).all()
    return panels[:-64].reshape(batch, -1, K, width)


@pytest.mark.parametrize("order", ["rows", "columns", "neither"])
@pytest.mark.parametrize("K", [1, 3, 16, 17, 40])
@pytest.mark.parametrize("N", [1, 5, 16, 63, 64, 65, 130])
def test_every_order_in_memory(engine: Engine, order: str, K: int, N: int) -> None:
    """Rows in order, columns in order, or neither: the panels are the same, zeros behind the last column."""
    rng = np.random.default_rng(0)
    matrices = rng.standard_normal((2, K, N)).astype(np.float32)
    laid = {
        "rows": lambda: matrices,
        "columns": lambda: np.ascontiguousarray(matrices.transpose(0, 2, 1)).transpose(0, 2, 1),
        "neither": lambda: np.repeat(np.repeat(matrices, 2, 1), 3, 2)[:, ::2, ::3],
    }[order]()
    packed = _pack(engine, laid)
    for place in range(2):
        np.testing.assert_array_equal(packed[place], pack_columns(matrices[place], tiling(engine.target).panel))


@pytest.mark.parametrize("is_transposed", [False, True])
def test_very_long_panels_are_packed_part_by_part(engine: Engine, is_transposed: bool) -> None:
    """Of each matrix of a batch."""
    K, width = 140_000, tiling(engine.target).panel
    matrices = np.arange(2 * 3 * K, dtype=np.float32).reshape(2, 3, K).transpose(0, 2, 1)
    packed = _pack(engine, matrices if is_transposed else np.ascontiguousarray(matrices))
    assert PackParams(K, 3, 1, 1).parts(width, 2) == 6
    for place in range(2):
        np.testing.assert_array_equal(packed[place], pack_columns(matrices[place], width))


def test_nothing_is_read_behind_the_matrix(engine: Engine) -> None:
    """NaN behind the last column stays out of the panels."""
    wide = np.full((1, 4, 40), np.nan, np.float32)
    wide[:, :, :33] = 1
    assert np.isfinite(_pack(engine, wide[:, :, :33])).all()


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
def test_a_square_is_turned(target: Target, lanes: int) -> None:
    """Element (i, j) comes to (j, i)."""
    module = Module(target)
    with module.kernel("turn") as b:
        source, result = b.buffer(0, F32), b.buffer(1, F32)
        for place, row in enumerate(transpose(b, [source.load(i * lanes, lanes) for i in range(lanes)])):
            result.store(row, place * lanes)
    engine = Engine(target)
    engine.add(module)
    square, turned = np.arange(lanes * lanes, dtype=np.float32).reshape(lanes, lanes), np.zeros((lanes, lanes), np.float32)
    call(engine, "turn", [square, turned])
    assert (turned == square.T).all()


def test_columns_are_packed_into_panels() -> None:
    """Panel by panel, row by row, zeros after the last column."""
    matrix = np.arange(10, dtype=np.float32).reshape(2, 5)
    expected = [[[0, 1, 2, 3], [5, 6, 7, 8]], [[4, 0, 0, 0], [9, 0, 0, 0]]]
    assert pack_columns(matrix, 4).tolist() == expected


@pytest.mark.parametrize("is_transposed", [False, True])
@pytest.mark.parametrize(("K", "N"), [(1, 1), (5, 17), (64, 33), (1500, 2000), (2000, 1500), (3, 0), (0, 3)])
def test_packing_by_rows_is_packing_at_once(K: int, N: int, is_transposed: bool) -> None:
    """A matrix that is had by its rows, in order, gives the panels of the whole, also where it takes several blocks."""
    matrix = np.random.default_rng(K + N).standard_normal((K, N)).astype(np.float32)
    held = np.ascontiguousarray(matrix.T) if is_transposed else matrix
    asked: list[tuple[int, int]] = []

    def rows(start: int, stop: int) -> Array:
        asked.append((start, stop))
        return held[start:stop]

    packed = pack_rows(rows, (len(held), held.shape[1]), 16, is_transposed=is_transposed)
    np.testing.assert_array_equal(packed, pack_columns(matrix, 16))
    assert [start for start, _ in asked[1:]] == [stop for _, stop in asked[:-1]]
