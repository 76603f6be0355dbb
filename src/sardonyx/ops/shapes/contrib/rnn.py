"""Recurrent networks of com.microsoft."""

from __future__ import annotations

from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank
from sardonyx.ops.shapes.rnn import lstm, state_shapes

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("DynamicQuantizeLSTM", domain=_MICROSOFT)
def dynamic_quantize_lstm(
    call: ShapeCall,
    x: Fact,
    weights: Fact,
    recurrence: Fact,
    *others: Fact | None,
    direction: str = "forward",
    hidden_size: int | None = None,
) -> tuple[Fact, ...]:
    """Infer as for LSTM, but R is (directions, H, 4 H)."""
    shape = require_rank(recurrence, "R", 3, 3)
    transposed = recurrence if shape is None else tensor(recurrence.dtype, (shape[0], shape[2], shape[1]))
    every, last = state_shapes(x, transposed, direction, hidden_size, 0)
    return tensor(x.dtype, every), tensor(x.dtype, last), tensor(x.dtype, last)


shape_function("AttnLSTM", domain=_MICROSOFT)(lstm)
