"""How tiles cover a matrix."""

from collections.abc import Callable

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.builder import Function
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, I32, I64
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.kernels.tiles import (
    Cell,
    TileEnds,
    Tiling,
    cover_columns,
    cover_rows,
    finish_in_a_loop,
    is_long,
    store_first,
    tile_spans,
    waits_in_memory,
)
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target

_HEIGHTS = (6, 4, 1)


@pytest.mark.parametrize(("M", "N"), [(0, 3), (1, 1), (5, 7), (6, 16), (13, 17), (19, 31), (24, 48)])
def test_every_element_is_covered_once(target: Target, M: int, N: int) -> None:
    """Whole panels, narrower tiles, and the rest of a vector."""
    lanes = target.lanes(32)
    shape, module = Tiling(lanes, ((2, _HEIGHTS), (1, _HEIGHTS))), Module(target)
    with module.kernel("count") as b:
        rows, columns = b.param(0), b.param(1)
        for vectors, heights, (left, right) in cover_columns(b, shape, (rows.like(0), columns)):
            with b.loop(left, right, vectors * lanes) as n:
                for height, (top, bottom) in cover_rows(heights, (rows.like(0), rows)):
                    with b.loop(top, bottom, height) as m, b.loop(m, m + height) as row:
                        for j, span in enumerate(tile_spans(b, shape, vectors, columns - n)):
                            place = b.buffer(0, I32).at(row * columns + n + j * lanes)
                            place.store(place.load(0, span) + 1, 0, span)
    engine, counts = Engine(target), np.zeros(M * N + 64, np.int32)
    engine.add(module)
    call(engine, "count", [counts], [M, N])
    assert (counts[: M * N] == 1).all()
    assert (counts[M * N :] == 0).all()


@pytest.mark.parametrize(("M", "N"), [(1, 1), (5, 7), (6, 9), (13, 15), (19, 16), (7, 17), (6, 24), (5, 27), (2, 31)])
def test_every_element_is_covered_once_where_panels_end_early(target: Target, M: int, N: int) -> None:
    """Elements behind a row's last are those of the next row: to store them would count twice."""
    lanes = target.lanes(32)
    shape, module = Tiling(lanes, ((2, _HEIGHTS), (1, _HEIGHTS))), Module(target)
    with module.kernel("count") as b:
        rows, columns = b.param(0), b.param(1)
        for vectors, _, (left, right) in cover_columns(b, shape, (rows.like(0), columns), panels_end_early=True):
            with b.loop(left, right, vectors * lanes) as n, b.loop(0, rows) as row:
                starts = [b.buffer(0, I32).at(row * columns + n + j * lanes) for j in range(vectors)]
                ends = TileEnds(b, lanes, vectors, columns - n)

                def count(spans: list[Span], starts: list[Pointer] = starts, ends: TileEnds = ends) -> None:
                    cells = [(start, start.load(0, span) + 1) for start, span in zip(starts, spans, strict=True)]
                    ends.store(cells, spans)

                ends.each_way(count)
    engine, counts = Engine(target), np.zeros(M * N + 64, np.int32)
    engine.add(module)
    call(engine, "count", [counts], [M, N])
    assert (counts[: M * N] == 1).all()
    assert (counts[M * N :] == 0).all()


@pytest.mark.parametrize("bits", [32, 64])
def test_the_first_lanes_of_vectors_are_stored(target: Target, bits: int) -> None:
    """Any number of them, and nothing behind."""
    lanes, module = target.lanes(bits), Module(target)
    kind, dtype = (I32, np.int32) if bits == 32 else (I64, np.int64)
    with module.kernel("store") as b:
        rows = [b.buffer(0, kind).at(row * lanes) for row in range(3)]
        results = [b.buffer(1, kind).at(row * lanes) for row in range(3)]
        store_first(b, [(result, row.load(0, lanes)) for result, row in zip(results, rows, strict=True)], b.param(0))
    engine = Engine(target)
    engine.add(module)
    numbers = np.arange(1, 3 * lanes + 1, dtype=dtype).reshape(3, lanes)
    for count in range(lanes):
        result = np.zeros_like(numbers)
        call(engine, "store", [numbers, result], [count])
        np.testing.assert_array_equal(result, np.where(np.arange(lanes) < count, numbers, 0))


def test_a_tiling_is_named_by_its_largest_tile() -> None:
    """Rows and columns."""
    shape = Tiling(16, ((4, _HEIGHTS), (1, (8, 1))))
    assert (shape.panel, shape.name) == (64, "6x64")


@pytest.mark.parametrize(("height", "vectors"), [(6, 2), (4, 2), (3, 1), (2, 4), (1, 1)])
def test_every_cell_is_finished_once(target: Target, height: int, vectors: int) -> None:
    """However many rows are finished at a time."""
    module, lanes = Module(target), target.lanes(32)
    with module.kernel("finish") as b:

        def row(i: Register) -> list[Cell]:
            return [cell((i * vectors + j) * lanes) for j in range(vectors)]

        def cell(place: Register) -> Cell:
            data = b.buffer(0, F32)
            return lambda: data.load(place, lanes) * 2.0 + 1.0, lambda value: data.store(value, place, lanes)

        finish_in_a_loop(b, height, vectors, row)
    engine = Engine(target)
    engine.add(module)
    sums = np.arange(height * vectors * lanes, dtype=np.float32)
    data = sums.copy()
    call(engine, "finish", [data], [])
    np.testing.assert_array_equal(data, sums * 2 + 1)


def _steps(count: int) -> Callable[..., Register]:
    def epilogue(b: Function, sums: Register, row: Register, column: Register, span: Span) -> Register:
        for _ in range(count):
            sums = sums + sums
        return sums

    return epilogue


def test_sums_wait_in_memory_sooner_where_registers_are_few(target: Target) -> None:
    """A chain of 20 instructions is seen by few vectors at a time there; one of 50 is not worth writing for each anywhere."""
    assert waits_in_memory(target, _steps(20)) == (target.registers < 32)
    assert waits_in_memory(target, _steps(50))
    assert is_long(target, _steps(50))
    assert not is_long(target, _steps(20))
