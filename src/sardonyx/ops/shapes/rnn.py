"""Recurrent networks."""

from __future__ import annotations

from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank

__all__: list[str] = []


@shape_function("GRU", "RNN")
def gru(
    call: ShapeCall,
    x: Fact,
    w: Fact,
    r: Fact,
    *others: Fact | None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
) -> tuple[Fact, ...]:
    """Infer (T, N, I) -> every state (T, directions, N, H) and the last (directions, N, H); layout 1 puts N first."""
    every, last = state_shapes(x, r, direction, hidden_size, layout)
    return tensor(x.dtype, every), tensor(x.dtype, last)


@shape_function("LSTM")
def lstm(
    call: ShapeCall,
    x: Fact,
    w: Fact,
    r: Fact,
    *others: Fact | None,
    direction: str = "forward",
    hidden_size: int | None = None,
    layout: int = 0,
) -> tuple[Fact, ...]:
    """Return the same, with the last cell state too."""
    every, last = state_shapes(x, r, direction, hidden_size, layout)
    return tensor(x.dtype, every), tensor(x.dtype, last), tensor(x.dtype, last)


def state_shapes(x: Fact, r: Fact, direction: str, hidden_size: int | None, layout: int) -> tuple[Shape, Shape]:
    """Return the shapes of every state and of the last."""
    shape = require_rank(x, "X", 3, 3)
    T, N = (anonymous(), anonymous()) if shape is None else shape[:2]
    if layout:
        T, N = N, T
    recurrence = require_rank(r, "R", 3, 3)
    H: Dim = hidden_size if hidden_size is not None else anonymous() if recurrence is None else recurrence[2]
    directions = 2 if direction == "bidirectional" else 1
    if layout:
        return (N, T, directions, H), (N, directions, H)
    return (T, directions, N, H), (directions, N, H)
