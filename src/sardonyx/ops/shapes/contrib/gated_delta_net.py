"""The gated delta network of com.microsoft."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank

__all__: list[str] = []


@shape_function("GatedDeltaNet", domain="com.microsoft")
def gated_delta_net(
    call: ShapeCall,
    query: Fact,
    key: Fact | None = None,
    value: Fact | None = None,
    cu_seqlens: Fact | None = None,
    decay: Fact | None = None,
    beta: Fact | None = None,
    initial_state: Fact | None = None,
    *others: Fact | None,
    state_update_capacity: int = 0,
) -> tuple[Fact, Fact, Fact]:
    """Infer (T, N, K) and (T, M, V) -> (T, M, V), states (B, M, V, K) in float, and a row of captured steps for each."""
    state = None if initial_state is None else require_rank(initial_state, "initial_state", 4, 4)
    packed = value is None
    source = require_rank(query if value is None else value, "query" if packed else "value", 2 if packed else 3, 3 if packed else 4)
    M, V = _sizes(source, state, packed=packed)
    output = None if source is None else (*source[: -1 if packed else -2], M, V)
    known: Shape = (_batch(source, cu_seqlens, packed=packed), M, V, _key_size(query, packed=packed)) if state is None else state
    captured = anonymous() if state_update_capacity else 0
    return tensor(query.dtype, output), tensor(DataType.FLOAT, known), tensor(DataType.FLOAT, (known[0], captured))


def _sizes(source: Shape | None, state: Shape | None, *, packed: bool) -> tuple[Dim, Dim]:
    """Return M and V, of the value where there is one."""
    if not packed and source is not None:
        return source[-2], source[-1]
    return (anonymous(), anonymous()) if state is None else (state[1], state[2])


def _batch(source: Shape | None, cu_seqlens: Fact | None, *, packed: bool) -> Dim:
    """Return how many sequences there are: one less than their bounds, or the first of two axes of tokens."""
    if cu_seqlens is not None:
        bounds = require_rank(cu_seqlens, "cu_seqlens", 1, 1)
        return anonymous() if bounds is None or bounds[0] == 0 else bounds[0] - 1
    has_two = source is not None and len(source) == (3 if packed else 4)
    return source[0] if source is not None and has_two else anonymous()


def _key_size(query: Fact, *, packed: bool) -> Dim:
    return anonymous() if packed or not query.shape else query.shape[-1]
