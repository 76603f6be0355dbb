"""Softmax and its kin: the output is as the input."""

from __future__ import annotations

from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.views.softmax import Softmax

__all__: list[str] = []


@shape_function("Hardmax", "LogSoftmax", "Softmax")
def softmax(call: ShapeCall, x: Fact) -> Fact:
    """Give the output the shape and type of the input, normalized along the axis, or before opset 13 over all axes from it on."""
    view = Softmax.of(call)
    if x.shape:
        view.first(len(x.shape))
    return tensor(x.dtype, x.shape)
