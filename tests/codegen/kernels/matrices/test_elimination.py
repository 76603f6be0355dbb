"""What eliminations share."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, F64
from sardonyx.codegen.kernels.matrices.elimination import elimination_tasks, exchange_rows, greatest_row
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import Target


@pytest.mark.parametrize(("together", "columns"), [(1, 1), (2, 3), (5, 100)])
def test_each_column_of_each_matrix_belongs_to_one_task(target: Target, together: int, columns: int) -> None:
    """A number goes from task to task of a matrix, behind a copy and the rows after it; the last task is known."""
    engine, module = Engine(target), Module(target)
    with module.kernel("count") as b, elimination_tasks(b, F32, rows=1, start=10.0) as task:
        with b.loop(task.first, task.last) as k:
            task.kept.store(task.kept.load() + task.copy.load(k * (task.size + 1)))
        with b.when(task.is_last):
            b.buffer(1, F64).store(task.kept.load(), task.matrix)
    engine.add(module)
    x, y = np.random.default_rng(0).integers(0, 9, (3, 7, 7)).astype(np.float32), np.zeros(3)
    parts = -(-7 // columns)
    memory = np.zeros((together, 7 * 8 + 1))
    call(engine, "count", [x, y, memory], [7, together, parts, columns, 3], 0, -(-3 // together) * parts * together)
    assert y.tolist() == (10 + np.trace(x, axis1=1, axis2=2)).tolist()


@pytest.mark.parametrize(("turns", "sign"), [(False, 1), (True, -1)])
def test_the_row_with_the_greatest_element_comes_up(target: Target, turns: bool, sign: int) -> None:
    """From a column on, with its sign turned or not; NaN is greater than all."""
    engine, module = Engine(target), Module(target)
    with module.kernel("move") as b:
        copy, k, size = b.buffer(0, F64), b.param(0), b.param(1)
        exchange_rows(b, copy, k, greatest_row(b, copy, k, size), size, first=k, turns=turns)
    engine.add(module)
    x = np.array([[9, 9, 9, 9], [1, 2, 3, 4], [5, -6, 7, 8], [0, np.nan, 0, 0.0]])
    finite = x.copy()
    finite[3, 1] = 0
    call(engine, "move", [finite], [1, 4], 0, 1)
    assert finite.tolist() == [[9, 9, 9, 9], [1, *(sign * np.array([-6.0, 7, 8]))], [5, 2, 3, 4], [0, 0, 0, 0]]
    call(engine, "move", [x], [1, 4], 0, 1)
    assert np.isnan(x[1, 1])
    assert x[3].tolist() == [0, 2, 3, 4]
