"""The convolution of com.microsoft for sequences that lie one after another."""

from __future__ import annotations

from sardonyx.ir import Dim
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("VarlenCausalConvWithState", domain=_MICROSOFT)
def varlen_causal_conv_with_state(
    call: ShapeCall,
    x: Fact,
    weight: Fact,
    bounds: Fact,
    bias: Fact | None = None,
    initial_state: Fact | None = None,
    *others: Fact | None,
    state_update_capacity: int = 0,
) -> tuple[Fact, ...]:
    """Infer (T, C) -> (T, C), a state of the shape of the initial one, and captured tokens (B, slots, C)."""
    shape = require_rank(x, "input", 2, 2)
    state = None if initial_state is None else require_rank(initial_state, "initial_state", 3, 3)
    require_rank(weight, "weight", 3, 3)
    B: Dim = anonymous() if state is None else state[0]
    captured = (B, max(state_update_capacity, 0), anonymous() if shape is None else shape[1])
    return tensor(x.dtype, shape), tensor(x.dtype, state), tensor(x.dtype, captured)
