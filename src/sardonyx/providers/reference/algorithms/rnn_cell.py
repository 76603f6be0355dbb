"""The cells of RNN, GRU and LSTM: one time step on preallocated buffers.

A cell belongs to one run of one direction. `step` reads the projected input of a step (N, gates x H), the previous hidden state
(N, H), and writes the next one into `out`; `freeze` undoes the step for the rows of the batch whose sequence has ended. Gate
order and equations are those of ONNX RNN-7, GRU-7 and LSTM-7, of which later versions change only types and layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.providers.reference.algorithms.rnn_activation import Activation

__all__ = ["Cell", "GruCell", "LstmCell", "RnnCell"]


class Cell(Protocol):
    """What the driver of a direction needs of a cell."""

    def step(self, projected: Array, hidden: Array, out: Array) -> None:
        """Advance by one time step: `out` (N, H) receives the next hidden state."""

    def freeze(self, ended: Array) -> None:
        """Give the rows of the boolean `ended` (N,) the inner state from before the last step."""


def _clip(x: Array, limit: float | None) -> None:
    if limit is not None:
        np.clip(x, -limit, limit, out=x)


class RnnCell:
    """Ht = f(Xt Wi^T + Ht-1 Ri^T + Wbi + Rbi)."""

    def __init__(self, recurrence: Array, activations: Sequence[Activation], clip: float | None) -> None:
        """Take `recurrence` (H, H)."""
        self._recurrence = recurrence.T
        self._activation = activations[0]
        self._limit = clip

    def step(self, projected: Array, hidden: Array, out: Array) -> None:
        """See Cell."""
        np.dot(hidden, self._recurrence, out=out)
        out += projected
        _clip(out, self._limit)
        self._activation(out)

    def freeze(self, ended: Array) -> None:
        """See Cell; there is no inner state."""


class GruCell:
    """Gates z, r, h; Ht = (1 - zt) . ht + zt . Ht-1.

    ht = g(Xt Wh^T + (rt . Ht-1) Rh^T + Rbh + Wbh), or with linear_before_reset g(Xt Wh^T + rt . (Ht-1 Rh^T + Rbh) + Wbh).
    """

    def __init__(
        self,
        recurrence: Array,
        activations: Sequence[Activation],
        clip: float | None,
        batch: int,
        linear_before_reset: bool,
        hidden_bias: Array | None,
    ) -> None:
        """Take `recurrence` (3H, H) and, with linear_before_reset, Rbh (H,) as `hidden_bias`."""
        H = recurrence.shape[1]
        self._width = H
        self._linear_before_reset = linear_before_reset
        self._recurrence = recurrence.T if linear_before_reset else recurrence[: 2 * H].T
        self._candidate_recurrence = recurrence[2 * H :].T
        self._f, self._g = activations
        self._limit = clip
        self._hidden_bias = hidden_bias
        self._gates = np.empty((batch, self._recurrence.shape[1]), recurrence.dtype)
        self._reset_hidden = np.empty((batch, H), recurrence.dtype)

    def step(self, projected: Array, hidden: Array, out: Array) -> None:
        """See Cell."""
        H, gates, reset_hidden = self._width, self._gates, self._reset_hidden
        np.dot(hidden, self._recurrence, out=gates)
        update_reset = gates[:, : 2 * H]
        update_reset += projected[:, : 2 * H]
        _clip(update_reset, self._limit)
        self._f(update_reset)
        reset = gates[:, H : 2 * H]
        if self._linear_before_reset:
            candidate = gates[:, 2 * H :]
            if self._hidden_bias is not None:
                candidate += self._hidden_bias
            np.multiply(candidate, reset, out=out)
        else:
            np.multiply(hidden, reset, out=reset_hidden)
            np.dot(reset_hidden, self._candidate_recurrence, out=out)
        out += projected[:, 2 * H :]
        _clip(out, self._limit)
        self._g(out)
        np.subtract(hidden, out, out=reset_hidden)
        reset_hidden *= gates[:, :H]
        out += reset_hidden

    def freeze(self, ended: Array) -> None:
        """See Cell; there is no inner state."""


class LstmCell:
    """Gates i, o, f, c; Ct = ft . Ct-1 + it . ct; Ht = ot . h(Ct).

    Peepholes add Pi . Ct-1, Pf . Ct-1 and Po . Ct to their gates; input_forget makes ft = 1 - it. Clipping bounds what enters
    the four gates; Ct enters h as it is, in which ONNX Runtime reads "the input of activations" more narrowly than the wording.
    """

    def __init__(
        self,
        recurrence: Array,
        activations: Sequence[Activation],
        clip: float | None,
        cell: Array,
        peepholes: Array | None,
        input_forget: bool,
    ) -> None:
        """Take `recurrence` (4H, H), the initial `cell` (N, H; copied) and `peepholes` (3, H) in the order i, o, f."""
        self.cell = cell.copy()
        self._previous = np.empty_like(self.cell)
        self._recurrence = recurrence.T
        self._f, self._g, self._h = activations
        self._limit = clip
        self._peepholes = peepholes
        self._input_forget = input_forget
        self._gates = np.empty((cell.shape[0], recurrence.shape[0]), recurrence.dtype)
        H = recurrence.shape[1]
        self._parts = tuple(self._gates[:, k * H : (k + 1) * H] for k in range(4))
        self._sigmoids = self._gates[:, : 3 * H]

    def step(self, projected: Array, hidden: Array, out: Array) -> None:
        """See Cell."""
        gates = self._gates
        i, o, f, c = self._parts
        np.dot(hidden, self._recurrence, out=gates)
        gates += projected
        self._previous, self.cell = self.cell, self._previous
        if self._peepholes is None:
            _clip(gates, self._limit)
            self._f(self._sigmoids)
        else:
            i += self._peepholes[0] * self._previous
            f += self._peepholes[2] * self._previous
            for gate in (i, f, c):
                _clip(gate, self._limit)
            self._f(i)
            self._f(f)
        if self._input_forget:
            np.subtract(1, i, out=f)
        self._g(c)
        np.multiply(f, self._previous, out=self.cell)
        c *= i
        self.cell += c
        if self._peepholes is not None:
            o += self._peepholes[1] * self.cell
            _clip(o, self._limit)
            self._f(o)
        np.copyto(out, self.cell)
        self._h(out)
        out *= o

    def freeze(self, ended: Array) -> None:
        """See Cell; the inner state is Ct."""
        self.cell[ended] = self._previous[ended]
