"""Quantized operators of com.microsoft."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.ops.fact import Fact, ShapeCall, shape_function, tensor
from sardonyx.ops.shapes.axes import replace_dim, require_rank, unknown_shape
from sardonyx.ops.shapes.broadcast import broadcast
from sardonyx.ops.shapes.contrib.matmul import gemm_shape
from sardonyx.ops.shapes.conv import conv_shape
from sardonyx.ops.shapes.windows import slide
from sardonyx.ops.views.conv import Conv
from sardonyx.ops.views.matmul import Gemm
from sardonyx.ops.views.pool import Pool
from sardonyx.ops.views.slice import Concat

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("QGemm", domain=_MICROSOFT)
def qgemm(
    call: ShapeCall,
    a: Fact,
    a_scale: Fact,
    a_zero: Fact,
    b: Fact,
    b_scale: Fact,
    b_zero: Fact,
    c: Fact | None = None,
    y_scale: Fact | None = None,
    y_zero: Fact | None = None,
) -> Fact:
    """Infer (M, K) x (K, N) -> (M, N), quantized where the output has a scale, else float."""
    return tensor(DataType.FLOAT if y_scale is None or y_zero is None else y_zero.dtype, gemm_shape(Gemm.of(call), a, b))


@shape_function("QLinearAdd", "QLinearMul", domain=_MICROSOFT)
def qlinear_binary(
    call: ShapeCall, a: Fact, a_scale: Fact, a_zero: Fact | None = None, b: Fact | None = None, *others: Fact | None
) -> Fact:
    """Broadcast both inputs."""
    return tensor(a.dtype, None if b is None else broadcast((a.shape, b.shape)))


@shape_function("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", domain=_MICROSOFT)
def qlinear_unary(call: ShapeCall, x: Fact, *others: Fact | None) -> Fact:
    """Give the output the shape and type of the input."""
    return tensor(x.dtype, x.shape)


@shape_function("QLinearConcat", domain=_MICROSOFT)
def qlinear_concat(call: ShapeCall, y_scale: Fact, y_zero: Fact, *inputs: Fact | None) -> Fact:
    """Return tensors, each with its scale and zero point, one after the other along the axis."""
    shapes = [None if fact is None else fact.shape for fact in inputs[::3]]
    known = [shape for shape in shapes if shape is not None]
    if not known or len(known) < len(shapes):
        return tensor(y_zero.dtype, unknown_shape(len(known[0])) if known else None)
    place = Concat.of(call).place(len(known[0]))
    return tensor(y_zero.dtype, replace_dim(known[0], place, sum(shape[place] for shape in known)))


@shape_function("QLinearWhere", domain=_MICROSOFT)
def qlinear_where(call: ShapeCall, condition: Fact, x: Fact, x_scale: Fact, x_zero: Fact, y: Fact, *others: Fact | None) -> Fact:
    """Broadcast all three."""
    return tensor(x.dtype, broadcast((condition.shape, x.shape, y.shape)))


@shape_function("QLinearGlobalAveragePool", domain=_MICROSOFT)
def qlinear_global_average_pool(call: ShapeCall, x: Fact, *others: Fact | None, channels_last: int = 0) -> Fact:
    """Reduce every spatial axis to 1."""
    shape = require_rank(x, "X", 3)
    if shape is None:
        return tensor(x.dtype)
    ones = (1,) * (len(shape) - 2)
    return tensor(x.dtype, (shape[0], *ones, shape[-1]) if channels_last else (*shape[:2], *ones))


@shape_function("QLinearAveragePool", domain=_MICROSOFT)
def qlinear_average_pool(
    call: ShapeCall,
    x: Fact,
    *others: Fact | None,
    channels_last: int = 0,
) -> Fact:
    """Infer (N, C, spatial…) -> (N, C, places of the window…), or with the channels last."""
    shape = require_rank(x, "X", 3)
    if shape is None:
        return tensor(x.dtype)
    window = Pool.of(call).window
    if channels_last:
        return tensor(x.dtype, (shape[0], *slide(window, shape[1:-1]), shape[-1]))
    return tensor(x.dtype, (*shape[:2], *slide(window, shape[2:])))


@shape_function("QLinearConv", domain=_MICROSOFT)
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
    *,
    channels_last: int = 0,
) -> Fact:
    """Infer as for QLinearConv of ai.onnx, or with the channels of X and the output last."""
    given = tensor(x.dtype, (x.shape[0], x.shape[-1], *x.shape[1:-1])) if channels_last and x.shape else x
    shape = conv_shape(Conv.of(call), given, w)
    return tensor(y_zero.dtype, (shape[0], *shape[2:], shape[1]) if channels_last and shape is not None else shape)
