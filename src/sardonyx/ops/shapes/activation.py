"""Activations: element-wise, with parameters."""

from __future__ import annotations

from sardonyx.errors import InvalidGraph
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import merge_shapes
from sardonyx.ops.shapes.broadcast import broadcast
from sardonyx.ops.views.activation import has_one_slope_vector

__all__: list[str] = []


@shape_function(
    "Celu",
    "Elu",
    "Gelu",
    "HardSigmoid",
    "HardSwish",
    "LeakyRelu",
    "Mish",
    "Relu",
    "Selu",
    "Shrink",
    "Sigmoid",
    "Softplus",
    "Softsign",
    "Swish",
    "ThresholdedRelu",
)
def same_shape(call: ShapeCall, x: Fact, *parameters: Fact | None) -> Fact:
    """Give the output the shape and type of the first input."""
    return tensor(x.dtype, x.shape)


@shape_function("Clip")
def clip(call: ShapeCall, x: Fact, least: Fact | None = None, most: Fact | None = None) -> Fact:
    """Give the output the shape and type of the input; the bounds are scalars."""
    for name, bound in (("min", least), ("max", most)):
        if bound is not None and bound.shape is not None and len(bound.shape) > 0 and bound.shape != (1,):
            raise InvalidGraph(f"{name} has shape {list(bound.shape)}, expected a scalar")
    return tensor(x.dtype, x.shape)


@shape_function("PRelu")
def prelu(call: ShapeCall, x: Fact, slope: Fact) -> Fact:
    """Give the output the shape and type of the input, to which the slope broadcasts.

    Before opset 7 a vector of slopes belonged to the channels.
    """
    if not has_one_slope_vector(call):
        broadcast((x.shape, slope.shape))
    return tensor(x.dtype, x.shape)


@shape_function("SwiGLU")
def swiglu(call: ShapeCall, gate: Fact, linear: Fact) -> Fact:
    """Give the output the shape of both inputs; nothing is broadcast."""
    dtype = gate.dtype if gate.dtype is not None else linear.dtype
    return tensor(dtype, merge_shapes(gate.shape, linear.shape, "the shapes of gate and linear input"))
