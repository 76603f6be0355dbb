"""Element-wise operators of com.microsoft."""

from __future__ import annotations

from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("BiasAdd", "BiasGelu", "FastGelu", "GatedAdd", "Gelu", "QuickGelu", "ScaledSiLU", domain=_MICROSOFT)
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
