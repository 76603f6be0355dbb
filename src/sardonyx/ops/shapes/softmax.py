"""Softmax and its kin: the output is as the input."""

from __future__ import annotations

from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import normalize_axis

__all__: list[str] = []


@shape_function("Hardmax", "LogSoftmax", "Softmax", since=13)
def softmax(call: ShapeCall, x: Fact, *, axis: int = -1) -> Fact:
    """The output is as the input, normalized along the axis."""
    if x.shape:
        normalize_axis(axis, len(x.shape))
    return tensor(x.dtype, x.shape)


@shape_function("Hardmax", "LogSoftmax", "Softmax")
def softmax_before_13(call: ShapeCall, x: Fact, *, axis: int = 1) -> Fact:
    """The output is as the input, normalized over all axes from `axis` on."""
    return tensor(x.dtype, x.shape)
