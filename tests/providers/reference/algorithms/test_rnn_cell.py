"""Cells step on buffers of their own and can undo a step for sequences that have ended."""

from __future__ import annotations

import numpy as np

from sardonyx.providers.reference.algorithms.rnn_activation import choose_activations
from sardonyx.providers.reference.algorithms.rnn_cell import LstmCell, RnnCell

N, H = 3, 2


def test_freeze_gives_ended_rows_their_old_cell_state() -> None:
    """Rows that go on keep the new one."""
    functions = choose_activations("LSTM", "forward", ("Sigmoid", "Tanh", "Tanh"), 3, (), ())[0]
    start = np.arange(N * H, dtype=np.float32).reshape(N, H)
    cell = LstmCell(np.ones((4 * H, H), np.float32), functions, None, start, None, False)
    cell.step(np.ones((N, 4 * H), np.float32), np.ones((N, H), np.float32), np.empty((N, H), np.float32))
    stepped = cell.cell.copy()
    cell.freeze(np.array([True, False, True]))
    np.testing.assert_array_equal(cell.cell[[0, 2]], start[[0, 2]])
    np.testing.assert_array_equal(cell.cell[1], stepped[1])


def test_the_initial_cell_state_is_copied() -> None:
    """A step leaves the array that the caller gave as it was."""
    functions = choose_activations("LSTM", "forward", ("Sigmoid", "Tanh", "Tanh"), 3, (), ())[0]
    start = np.zeros((N, H), np.float32)
    cell = LstmCell(np.ones((4 * H, H), np.float32), functions, None, start, None, False)
    for _ in range(3):
        cell.step(np.ones((N, 4 * H), np.float32), np.ones((N, H), np.float32), np.empty((N, H), np.float32))
    assert not start.any()


def test_clip_bounds_the_input_of_the_activation() -> None:
    """Affine with alpha 1 shows the clipped sum itself."""
    functions = choose_activations("RNN", "forward", ("Affine",), 1, (), ())[0]
    out = np.empty((N, H), np.float32)
    RnnCell(np.ones((H, H), np.float32), functions, 0.25).step(np.ones((N, H), np.float32), np.ones((N, H), np.float32), out)
    np.testing.assert_array_equal(out, 0.25)
