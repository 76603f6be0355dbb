"""Convolutions."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank, size_of, unknown_shape
from sardonyx.ops.shapes.elements import dims_of
from sardonyx.ops.shapes.windows import slide, slide_back
from sardonyx.ops.views.conv import Conv, ConvTranspose

__all__: list[str] = []


def conv_shape(view: Conv, x: Fact, w: Fact) -> Shape | None:
    """Infer (N, C, spatial…) * (M, C / group, kernel…) -> (N, M, places of the kernel…)."""
    shape, weights = require_rank(x, "X", 3), require_rank(w, "W", 3)
    if weights is None or shape is None:
        known = weights if shape is None else shape
        return None if known is None else unknown_shape(len(known))
    if len(shape) != len(weights):
        raise InvalidGraph(f"X of shape {dims_text(shape)} and W of shape {dims_text(weights)} have different ranks")
    C, part = shape[1], weights[1]
    if isinstance(C, int) and isinstance(part, int) and part * view.group != C:
        raise InvalidGraph(
            f"X of shape {dims_text(shape)} has {C} channels, but W of shape {dims_text(weights)} takes {part} x group {view.group}"
        )
    return shape[0], weights[0], *slide(view.window(weights[2:]), shape[2:])


@shape_function("Conv")
def conv(
    call: ShapeCall,
    x: Fact,
    w: Fact,
    b: Fact | None = None,
) -> Fact:
    """Keep the type of the input."""
    return tensor(x.dtype, conv_shape(Conv.of(call), x, w))


@shape_function("ConvInteger")
def conv_integer(
    call: ShapeCall,
    x: Fact,
    w: Fact,
    x_zero: Fact | None = None,
    w_zero: Fact | None = None,
) -> Fact:
    """Infer for integers, into int32."""
    return tensor(DataType.INT32, conv_shape(Conv.of(call), x, w))


@shape_function("QLinearConv")
def qlinear_conv(
    call: ShapeCall,
    x: Fact,
    x_scale: Fact,
    x_zero: Fact,
    w: Fact,
    w_scale: Fact,
    w_zero: Fact,
    y_scale: Fact,
    y_zero: Fact,
    b: Fact | None = None,
) -> Fact:
    """Infer for quantized tensors, into the type of the last zero point."""
    return tensor(y_zero.dtype, conv_shape(Conv.of(call), x, w))


@shape_function("DeformConv")
def deform_conv(
    call: ShapeCall,
    x: Fact,
    w: Fact,
    offset: Fact,
    b: Fact | None = None,
    mask: Fact | None = None,
) -> Fact:
    """Infer as for Conv."""
    return tensor(x.dtype, conv_shape(Conv.of(call), x, w))


@shape_function("ConvTranspose")
def conv_transpose(call: ShapeCall, x: Fact, w: Fact, b: Fact | None = None) -> Fact:
    """Infer (N, C, spatial…), (C, M / group, kernel…) -> (N, M, spatial…).

    Its sizes are those that a convolution would take back to the input's.
    """
    return conv_transpose_fact(ConvTranspose.of(call), x, w)


def conv_transpose_fact(view: ConvTranspose, x: Fact, w: Fact) -> Fact:
    """Infer as `conv_transpose`, for a view."""
    shape, weights = require_rank(x, "X", 3), require_rank(w, "W", 3)
    if shape is None or weights is None:
        found = weights if shape is None else shape
        return tensor(x.dtype, None if found is None else unknown_shape(len(found)))
    if isinstance(shape[1], int) and isinstance(weights[0], int) and shape[1] != weights[0]:
        raise InvalidGraph(
            f"X of shape {dims_text(shape)} has {shape[1]} channels, but W of shape {dims_text(weights)} takes {weights[0]}"
        )
    head, rank = (shape[0], weights[1] * view.group), len(shape) - 2
    if view.output_shape:
        return tensor(x.dtype, (*head, *view.output_shape[-rank:]))
    return tensor(x.dtype, head + slide_back(view.window(weights[2:]), shape[2:], view.padding(rank)))


@shape_function("Col2Im")
def col2im(call: ShapeCall, x: Fact, image_shape: Fact, block_shape: Fact) -> Fact:
    """Infer (N, C * block, places) -> (N, C, image…)."""
    image, block = dims_of(image_shape), dims_of(block_shape)
    if image is None:
        return tensor(x.dtype)
    sizes = tuple([anonymous() if dim is None else dim for dim in image])
    N, channels = (anonymous(), anonymous()) if x.shape is None or len(x.shape) < 2 else x.shape[:2]
    area: Dim | None = None if block is None or None in block else size_of([dim for dim in block if dim is not None])
    return tensor(x.dtype, (N, anonymous() if area is None or area == 0 else channels // area, *sizes))


@shape_function("CausalConvWithState")
def causal_conv(call: ShapeCall, x: Fact, w: Fact, b: Fact | None = None, past: Fact | None = None) -> tuple[Fact, ...]:
    """Give the output the shape and type of the input (N, C, T); the state holds the last k - 1 of each channel."""
    shape, weights = require_rank(x, "input", 3, 3), require_rank(w, "weight", 3, 3)
    state = None if shape is None or weights is None else (shape[0], shape[1], weights[2] - 1)
    return tensor(x.dtype, shape), tensor(x.dtype, state)


@shape_function("CausalConvWithState", domain="com.microsoft")
def microsoft_causal_conv(
    call: ShapeCall,
    x: Fact,
    w: Fact,
    b: Fact | None = None,
    past: Fact | None = None,
    *,
    channels_last: int = 0,
    dilation: int = 1,
    state_window: int = 0,
) -> tuple[Fact, ...]:
    """Infer as for the standard's, with a state of (k - 1) x dilation.

    With channels_last its positions come second; with a window its slots come before.
    """
    shape, weights = require_rank(x, "input", 3), require_rank(w, "weight", 3)
    if shape is None or weights is None:
        return tensor(x.dtype, shape), tensor(x.dtype)
    length = (weights[-1] - 1) * dilation
    state = (shape[0], length, *shape[2:]) if channels_last else (*shape[:-1], length)
    return tensor(x.dtype, shape), tensor(x.dtype, (state_window, *state) if state_window else state)
