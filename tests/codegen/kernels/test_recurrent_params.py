"""How calls of the recurrent kernel are cut into tasks."""

import dataclasses

import pytest

from sardonyx.codegen.emit.expr import argument
from sardonyx.codegen.emit.types import F32
from sardonyx.codegen.kernels.recurrent_params import PARAMS, Cell, Phase, Plane, RecurrentParams
from sardonyx.codegen.target import host_target

X = argument(0, F32)
LSTM = Cell((Phase(4, Plane.HIDDEN, (Plane.CELL,), ((Plane.CELL, X), (Plane.HIDDEN, X))),), 2, 0, (Plane.HIDDEN, Plane.CELL), False)
GRU = Cell(
    (
        Phase(2, Plane.HIDDEN, (Plane.HIDDEN,), ((Plane.UPDATE, X), (Plane.RESET, X))),
        Phase(1, Plane.RESET, (Plane.UPDATE,), ((Plane.HIDDEN, X),)),
    ),
    4,
    0,
    (Plane.HIDDEN,),
    False,
)


def test_panels_are_four_vectors_wide() -> None:
    """As many vectors of units as that takes, of all gates of a phase; units are padded to what all phases need."""
    assert [LSTM.panel_units(0), GRU.panel_units(0), GRU.panel_units(1)] == [1, 2, 4]
    lanes = host_target().lanes(32)
    assert [LSTM.padded(host_target(), H) for H in (1, 2 * lanes, 2 * lanes + 1)] == [2 * lanes, 2 * lanes, 4 * lanes]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize(
    ("N", "T", "H", "count"), [(1, 1, 16, 1), (1, 1000, 64, 2), (32, 50, 512, 1), (5000, 3, 4096, 1), (0, 4, 8, 1), (3, 0, 8, 2)]
)
def test_a_round_is_a_multiple_of_what_runs_together(threads, N, T, H, count):
    """All rows and panels are in some unit of work, and no task takes long."""
    target = host_target()
    padded = LSTM.padded(target, H)
    params = RecurrentParams(
        N=N,
        T=T,
        H=H,
        padded=padded,
        directions=count,
        first=0,
        count=count,
        backward=0,
        projected=(0, 0),
        y=(0, 0, 0),
        last=(0, 0),
        initial=(0, 0),
        initial_cell=(0, 0),
    )
    work = params.cut(target, LSTM, threads)
    assert work.rows * work.row_blocks >= N
    assert work.panels * work.column_blocks * 2 * target.lanes(32) >= padded
    assert work.parts % threads == 0 or params.tasks(LSTM, work) == 1
    products = work.rows * work.panels * 2 * target.lanes(32) * H * LSTM.gates
    units = count * work.row_blocks * work.column_blocks
    assert -(-units // work.parts) * products * work.ticks < 2**29
    assert params.tasks(LSTM, work) % work.parts == 0


def params_of(N: int, T: int, H: int, cell: Cell = LSTM) -> RecurrentParams:
    padded, none = cell.padded(host_target(), H), (0, 0)
    return RecurrentParams(N, T, H, padded, 1, 0, 1, 0, none, (0, 0, 0), none, none, none)


def test_words_have_the_order_of_the_names() -> None:
    """Sizes, the cut, strides."""
    params = dataclasses.replace(params_of(3, 4, 5), initial_cell=(7, 9))
    words = dict(zip(PARAMS, params.words(params.cut(host_target(), LSTM, 1)), strict=True))
    assert (words["N"], words["T"], words["H"], words["units"], words["initial_cell_d"]) == (3, 4, 5, 1, 9)


def test_one_thread_walks_all_panels_in_one_unit_of_work() -> None:
    """So that no tick has to be a round."""
    work = params_of(32, 10, 512).cut(host_target(), LSTM, 1)
    assert (work.row_blocks, work.column_blocks, work.parts) == (1, 1, 1)


def test_threads_share_rows_while_weights_are_small() -> None:
    """Each then goes on without waiting for the other."""
    work = params_of(16, 10, 128).cut(host_target(), LSTM, 2)
    assert (work.rows, work.row_blocks, work.column_blocks, work.parts) == (8, 2, 1, 2)


@pytest.mark.parametrize("N", [1, 32])
def test_threads_share_panels_of_large_weights(N: int) -> None:
    """Each tick is then a round."""
    work = params_of(N, 10, 1024).cut(host_target(), LSTM, 2)
    assert (work.row_blocks, work.column_blocks, work.parts, work.ticks) == (1, 2, 2, 1)


def test_a_short_step_of_one_row_is_not_shared() -> None:
    """A round would take longer than half of it."""
    assert params_of(1, 1000, 64).cut(host_target(), LSTM, 2).column_blocks == 1
