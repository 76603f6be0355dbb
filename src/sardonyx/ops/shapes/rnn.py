"""Recurrent networks."""

from __future__ import annotations

from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank
from sardonyx.ops.views.rnn import Recurrent

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
    _require_weights(call, x, w, r)
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
    if not call.domain:
        _require_weights(call, x, w, r)
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


def _require_weights(call: ShapeCall, x: Fact, w: Fact, r: Fact) -> None:
    """Raise InvalidGraph for attributes that are none, and for weights that cannot fit X, R or them."""
    view = Recurrent.of(call)
    features, weights, recurrence = (require_rank(fact, name, 3, 3) for fact, name in ((x, "X"), (w, "W"), (r, "R")))
    if recurrence is None:
        return
    D, H = len(view.backward), recurrence[2]
    if view.hidden_size is not None and isinstance(H, int) and view.hidden_size != H:
        raise InvalidGraph(
            f"hidden_size is {view.hidden_size}, but R has shape {dims_text(recurrence)}: its last dimension must equal it"
        )
    for name, shape, wanted in (
        ("W", weights, (D, view.gates * H, features[2] if features is not None else None)),
        ("R", recurrence, (D, view.gates * H, H)),
    ):
        pairs = [] if shape is None else zip(shape, wanted, strict=True)
        if any(isinstance(found, int) and isinstance(dim, int) and found != dim for found, dim in pairs):
            expected = ", ".join("any" if dim is None else str(dim) for dim in wanted)
            raise InvalidGraph(
                f"{name} has shape {dims_text(shape or ())}; the shapes of X and R, the direction and {call.op_type} make it "
                f"[{expected}]"
            )
