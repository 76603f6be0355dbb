"""Operators that ai.onnx had as experiments, up to opset 9."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.errors import InvalidGraph
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank
from sardonyx.ops.shapes.slice import slice_

__all__: list[str] = []


@shape_function("Affine", "ImageScaler", "ParametricSoftplus", "Scale", "ScaledTanh")
def same_shape(call: ShapeCall, x: Fact) -> Fact:
    """Give the output the shape and type of the input."""
    return tensor(x.dtype, x.shape)


@shape_function("Crop")
def crop(call: ShapeCall, x: Fact, *, border: Sequence[int] = (), scale: Sequence[int] = ()) -> Fact:
    """Return (N, C, H, W) without a border (left, top, right, bottom), or with a height and a width."""
    shape = require_rank(x, "input", 4, 4)
    if len(border) != 4 or len(scale) not in (0, 2):
        raise InvalidGraph(f"border {list(border)} and scale {list(scale)}; expected four values, and two or none")
    head = (anonymous(), anonymous()) if shape is None else shape[:2]
    if len(scale):
        return tensor(x.dtype, (*head, *scale))
    if shape is None:
        return tensor(x.dtype, (*head, anonymous(), anonymous()))
    left, top, right, bottom = border
    return tensor(x.dtype, (*head, shape[2] - top - bottom, shape[3] - left - right))


@shape_function("DynamicSlice")
def dynamic_slice(call: ShapeCall, x: Fact, starts: Fact, ends: Fact, axes: Fact | None = None) -> Fact | tuple[Fact, ...]:
    """Return ranges along axes, as Slice-10 takes them."""
    return slice_(call, x, starts, ends, axes)
