"""The recurrent kernel against float64, with a cell of two phases and two states of its own."""

import numpy as np
import pytest
from support.kernels import call

from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.recurrent import write_recurrent
from sardonyx.codegen.kernels.recurrent_params import PLANES, Cell, Phase, Plane, RecurrentParams, Work
from sardonyx.codegen.run.jit import Engine
from sardonyx.codegen.target import available_levels, host_target

LEVELS = [level for level in available_levels() if level != "amx"]
A = [argument(index, F32) for index in range(6)]
FIRST = Phase(1, Plane.HIDDEN, (Plane.CELL,), ((Plane.CELL, A[3] + A[0]), (Plane.RESET, A[0] + A[1] + A[2])))
SECOND = Phase(2, Plane.RESET, (Plane.HIDDEN,), ((Plane.HIDDEN, (A[0] + A[2]) * 0.5 - (A[1] + A[3]) * A[5] * 0.25),))
"""p = h R0 + x0; c += h R0; q = p + column; h = (q R1 + x1) / 2 - (q R2 + x2) h / 4: the second argument list has a column too."""
CELL = Cell((FIRST, SECOND), units=4, columns=1, states=(Plane.HIDDEN, Plane.CELL), is_ragged=False)
RAGGED = Cell((FIRST, SECOND), units=4, columns=1, states=(Plane.HIDDEN, Plane.CELL), is_ragged=True)


@pytest.fixture(scope="module")
def engines():
    made = {}
    for level in LEVELS:
        module = Module(host_target(level))
        write_recurrent(module, "cell", CELL)
        write_recurrent(module, "ragged", RAGGED)
        made[level] = Engine(module.target)
        made[level].add(module)
    return made


def draw(T, N, H, D):
    rng = np.random.default_rng(T + N + H)
    shapes = {"x": (T, N, D, 3, H), "r": (D, 3, H, H), "column": (D, H), "h": (D, N, H), "c": (D, N, H)}
    return {name: (rng.standard_normal(shape) / (H if name == "r" else 1)).astype(np.float32) for name, shape in shapes.items()}


def exact(x, r, column, h, c, backward, lengths=None):
    """The same in float64: Y (T, D, N, H), and the last states."""
    T, N, D, _, H = x.shape
    x, r, column, h, c = (array.astype(np.float64) for array in (x, r, column, h, c))
    y, h, c = np.zeros((T, D, N, H)), h.copy(), c.copy()
    lengths = np.full(N, T) if lengths is None else lengths
    for d in range(D):
        for s in range(T):
            t = T - 1 - s if backward >> d & 1 else s
            on = (t < lengths)[:, np.newaxis]
            product = h[d] @ r[d, 0]
            q = product + x[t, :, d, 0] + column[d]
            c[d] = np.where(on, c[d] + product, c[d])
            new = (q @ r[d, 1] + x[t, :, d, 1]) * 0.5 - (q @ r[d, 2] + x[t, :, d, 2]) * h[d] * 0.25
            h[d] = np.where(on, new, h[d])
            y[t, d] = np.where(on, new, 0)
    return y, h, c


def packed(gates, panel_units, lanes, padded):
    """(gates, H, H) of one direction as panels, and (…, gates, H) as arranged rows, by one function: the last axis is the unit."""
    *outer, count, H = gates.shape
    wide = np.zeros((*outer, count, padded), np.float32)
    wide[..., :H] = gates
    grouped = wide.reshape(*outer, count, padded // (panel_units * lanes), panel_units, lanes)
    return np.moveaxis(grouped, -4, -2)  # (…, panels, units, gates, lanes)


def run(engine, drawn, *, work, backward=0, lengths=None):
    target = engine.target
    T, N, D, _, H = drawn["x"].shape
    padded, lanes = CELL.padded(target, H), target.lanes(32)
    projected = np.concatenate(
        [packed(drawn["x"][:, :, d][:, :, gates], 1, lanes, padded).reshape(T, N, -1) for d in range(D) for gates in ([0], [1, 2])],
        axis=-1,
    )
    weights = []
    for number, gates in enumerate(([0], [1, 2])):
        rows = np.swapaxes(drawn["r"][:, gates], 1, 2)  # (D, k, gates, H)
        panels = packed(rows, CELL.panel_units(number), lanes, padded)  # (D, k, panels, units, gates, lanes)
        weights.append(np.ascontiguousarray(np.moveaxis(panels, 1, 2)))
    column = np.zeros((D, 1, padded), np.float32)
    column[:, 0, :H] = drawn["column"]
    state = np.full((PLANES, D, N, padded), np.nan, np.float32)
    y, h, c = np.full((T, D, N, H), np.nan, np.float32), np.empty_like(drawn["h"]), np.empty_like(drawn["c"])
    status = np.zeros(1, np.int64)
    last = (H, N * H)
    params = RecurrentParams(
        N=N,
        T=T,
        H=H,
        padded=padded,
        directions=D,
        first=0,
        count=D,
        backward=backward,
        projected=(N * projected.shape[2], projected.shape[2]),
        y=(D * N * H, H, N * H),
        last=last,
        initial=last,
        initial_cell=last,
    )
    arrays = [np.ascontiguousarray(projected), state, y, column, drawn["h"], h, *weights, drawn["c"], c]
    if lengths is not None:
        arrays += [lengths.astype(np.int32), status]
    cut = params.cut(target, CELL, 1) if work is None else work
    for task in range(params.tasks(CELL, cut)):
        call(engine, "cell" if lengths is None else "ragged", arrays, params.words(cut), task, task + 1)
    return y, h, c, int(status[0])


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("H", [1, 7, 16, 17, 33, 70, 300])
@pytest.mark.parametrize("N", [1, 2, 3, 9])
def test_units_and_rows_around_every_width(engines, level, H, N):
    """Tiles of every height with their tails, at each level, in both directions."""
    drawn = draw(3, N, H, 2)
    found = run(engines[level], drawn, work=None, backward=2)
    for ours, theirs in zip(found, exact(**drawn, backward=2), strict=False):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("level", LEVELS)
def test_sequences_end_early(engines, level):
    """Behind the end Y is zero and the state stays; backward, a row begins with its own last step."""
    drawn, lengths = draw(6, 5, 20, 2), np.array([6, 0, 3, 1, 5])
    found = run(engines[level], drawn, work=None, backward=2, lengths=lengths)
    for ours, theirs in zip(found, exact(**drawn, backward=2, lengths=lengths), strict=False):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [-1, 7])
def test_a_length_outside_the_steps_is_reported(engines, length):
    """By the number of its row and 1; nothing is read out of bounds."""
    *_, status = run(engines[LEVELS[-1]], draw(6, 3, 20, 1), work=None, lengths=np.array([6, length, 0]))
    assert status == 2


WORKS = {
    "rows": Work(rows=4, row_blocks=3, panels=9, column_blocks=1, ticks=4, parts=2),
    "columns": Work(rows=9, row_blocks=1, panels=1, column_blocks=9, ticks=1, parts=4),
    "both": Work(rows=5, row_blocks=2, panels=2, column_blocks=5, ticks=1, parts=3),
    "one round": Work(rows=9, row_blocks=1, panels=9, column_blocks=1, ticks=100, parts=1),
}


@pytest.mark.parametrize("name", list(WORKS))
def test_cuts_change_no_bits(engines, name):
    """Rows, panels and ticks in any number of tasks."""
    drawn = draw(5, 9, 140, 2)
    whole = run(engines[LEVELS[-1]], drawn, work=None, backward=1)
    cut = run(engines[LEVELS[-1]], drawn, work=WORKS[name], backward=1)
    for one, other in zip(whole[:3], cut[:3], strict=True):
        np.testing.assert_array_equal(one, other)
