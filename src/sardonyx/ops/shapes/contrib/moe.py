"""Mixtures of experts of com.microsoft."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import size_of

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("MoE", "QMoE", domain=_MICROSOFT)
def mixture_of_experts(call: ShapeCall, x: Fact, *others: Fact | None) -> Fact:
    """Give the output the shape and type of the input."""
    return tensor(x.dtype, x.shape)


@shape_function("MoEGroupRouter", domain=_MICROSOFT)
def moe_group_router(
    call: ShapeCall, logits: Fact, expert_bias: Fact, projection_weight: Fact | None = None
) -> tuple[Fact, Fact, Fact]:
    """Infer (…, E) -> (tokens, E), scores in float; E is the projection's first size where there is one."""
    rows = anonymous() if logits.shape is None else size_of(logits.shape[:-1])
    source = logits.shape[-1:] if projection_weight is None and logits.shape is not None else ()
    if projection_weight is not None and projection_weight.shape is not None:
        source = projection_weight.shape[:1]
    shape = (rows, source[0] if source else anonymous())
    scores = tensor(DataType.FLOAT, shape)
    return tensor(logits.dtype, shape), scores, scores
