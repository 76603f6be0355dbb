"""Mixtures of experts of com.microsoft."""

from __future__ import annotations

from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("MoE", "QMoE", domain=_MICROSOFT)
def mixture_of_experts(call: ShapeCall, x: Fact, *others: Fact | None) -> Fact:
    """Give the output the shape and type of the input."""
    return tensor(x.dtype, x.shape)
