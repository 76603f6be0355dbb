"""Element-wise operators of com.microsoft."""

from __future__ import annotations

from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import merge_width

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("BiasAdd", "BiasGelu", "FastGelu", domain=_MICROSOFT)
def with_bias(call: ShapeCall, x: Fact, bias: Fact | None = None, *others: Fact | None) -> Fact:
    """Give the output the shape and type of the first input, whose last axis is as long as the bias."""
    return tensor(x.dtype, merge_width(x.shape, bias))


@shape_function("GatedAdd", "Gelu", "QuickGelu", "ScaledSiLU", domain=_MICROSOFT)
def same_shape(call: ShapeCall, x: Fact, *others: Fact | None) -> Fact:
    """Give the output the shape and type of the first input."""
    return tensor(x.dtype, x.shape)


@shape_function("LinearAttentionGate", domain=_MICROSOFT)
def linear_attention_gate(call: ShapeCall, a: Fact, dt_bias: Fact, decay_scale: Fact, b: Fact | None = None) -> tuple[Fact, ...]:
    """Give the decay the fact of the first input, the rate that of the last."""
    return tensor(a.dtype, a.shape), tensor(a.dtype, None if b is None else b.shape)


@shape_function("BiasSplitGelu", domain=_MICROSOFT)
def bias_split_gelu(call: ShapeCall, x: Fact, bias: Fact) -> Fact:
    """Halve the last axis."""
    return tensor(x.dtype, None if not x.shape else (*x.shape[:-1], x.shape[-1] // 2))
