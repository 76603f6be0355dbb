"""How products are cut into tasks: equal pieces of whole tiles, shared evenly."""

import dataclasses
from collections.abc import Sequence

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import I64
from sardonyx.codegen.kernels.cuts import TASKS_PER_THREAD, cut_for, piece
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target

SIZE, PIECES = 100, 7


@pytest.fixture(scope="module")
def engine(target: Target) -> Engine:
    """A kernel that writes where each piece begins and ends, in units that are known and that are given."""
    module = Module(target)
    with module.kernel("pieces") as b:
        pieces, size, unit = (b.param(place) for place in range(3))
        with b.loop(b.begin, b.end) as task:
            for place, bound in enumerate([*piece(b, task, pieces, size, 6), *piece(b, task, pieces, size, unit)]):
                b.buffer(0, I64).store(bound, task * 4 + place)
    engine = Engine(target)
    engine.add(module)
    return engine


def _pieces(engine: Engine, pieces: int, size: int) -> list[list[int]]:
    found = np.zeros((pieces, 4), np.int64)
    call(engine, "pieces", [found], [pieces, size, 6], 0, pieces)
    return found.tolist()


@pytest.mark.parametrize("size", [1, 5, 6, 7, 60, 61, 100])
def test_pieces_follow_one_another(engine: Engine, size: int) -> None:
    """From the first to the last row, each from a multiple of the unit on, whether that is known to the code or given."""
    count = min(PIECES, -(-size // 6))
    bounds = _pieces(engine, count, size)
    assert [bound[:2] for bound in bounds] == [bound[2:] for bound in bounds]
    assert [0, *(end for _, end, *_ in bounds)] == [*(first for first, *_ in bounds), size]
    assert all(first % 6 == 0 < end - first for first, end, *_ in bounds)


def test_pieces_differ_by_one_unit(engine: Engine) -> None:
    """Some are of one tile more than the others, and the first one is of those."""
    lengths = [end - first for first, end, *_ in _pieces(engine, PIECES, 6 * 17)]
    assert sorted(set(lengths)) == [12, 18]
    assert lengths[0] == 18


def _longest(sizes: Sequence[float], threads: int) -> float:
    """What the busiest of the threads has to do where each takes the next task as soon as it is free."""
    loads = [0.0] * threads
    for size in sizes:
        loads[loads.index(min(loads))] += size
    return max(loads)


@pytest.mark.parametrize("threads", [2, 3, 4, 6, 8])
@pytest.mark.parametrize(
    ("rows", "panels", "kept"), [(33, 3, True), (33, 3, False), (22, 12, False), (250, 6, False), (9, 32, False)]
)
def test_threads_have_equal_shares(target: Target, rows: int, panels: int, kept: bool, threads: int) -> None:
    """To a fourth at most, of products of some tiles for each thread."""
    target = dataclasses.replace(target, cache_bytes=1 << 20)
    pieces, columns = cut_for(target, (1, rows), panels, 1 << (16 if kept else 24), threads)
    cuts = [[-(-number * count // parts) for number in range(parts + 1)] for count, parts in ((rows, pieces), (panels, columns))]
    down, across = (np.diff(cut) for cut in cuts)
    assert _longest([float(m * n) for m in down for n in across], threads) <= 1.25 * rows * panels / threads


def test_groups_are_shared_first(target: Target) -> None:
    """As many as the threads want need no cuts."""
    assert cut_for(target, (1, 100), 10, 1 << 10, 2, groups=2 * TASKS_PER_THREAD) == (1, 1)


def test_one_thread_cuts_nothing(target: Target) -> None:
    """Beyond the fewest pieces of rows."""
    assert cut_for(target, (3, 100), 10, 1 << 30, 1) == (3, 1)


def test_rows_that_cost_much_to_cut_are_not(target: Target) -> None:
    """Columns are shared instead, by a multiple of the threads."""
    assert cut_for(target, (1, 100), 14, 1 << 10, 2, may_add_rows=False) == (1, 8)
