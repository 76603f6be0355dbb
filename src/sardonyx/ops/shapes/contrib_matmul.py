"""Matrix products and quantized element-wise operators of com.microsoft."""

from __future__ import annotations

from collections.abc import Sequence

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, shape_function, tensor
from sardonyx.ops.shapes.axes import normalize_axis, replace_dim, require_rank, unknown_shape
from sardonyx.ops.shapes.broadcast import broadcast
from sardonyx.ops.shapes.matmul import product_shape
from sardonyx.ops.shapes.windows import Window, slide

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("MatMulNBits", domain=_MICROSOFT)
def matmul_nbits(call: ShapeCall, a: Fact, b: Fact, scales: Fact, *others: Fact | None, K: int, N: int) -> Fact:
    """(…, K) x packed (N, blocks, bytes) -> (…, N)."""
    if a.shape is None:
        return tensor(a.dtype)
    if not a.shape or (isinstance(a.shape[-1], int) and a.shape[-1] != K):
        raise InvalidGraph(f"A of shape {dims_text(a.shape)} does not end in K={K}")
    return tensor(a.dtype, (*a.shape[:-1], N))


@shape_function("FusedMatMul", "TransposeMatMul", domain=_MICROSOFT)
def fused_matmul(call: ShapeCall, a: Fact, b: Fact, *, transA: int = 0, transB: int = 0, transBatchA: int = 0,
                 transBatchB: int = 0) -> Fact:  # fmt: skip
    """MatMul of inputs that may be transposed in the last two axes, or have their batch next to the last axis."""
    if a.shape is None or b.shape is None:
        return tensor(a.dtype)
    return tensor(a.dtype, product_shape(_turned(a.shape, transA, transBatchA), _turned(b.shape, transB, transBatchB)))


def _turned(shape: Shape, transpose: int, transpose_batch: int) -> Shape:
    if len(shape) < 2:
        return shape
    if transpose_batch:
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if transpose else shape


@shape_function("DynamicQuantizeMatMul", domain=_MICROSOFT)
def dynamic_quantize_matmul(call: ShapeCall, a: Fact, b: Fact, b_scale: Fact, *others: Fact | None) -> Fact:
    """MatMul in the type of the first input."""
    return tensor(a.dtype, product_shape(a.shape, b.shape))


@shape_function("MatMulIntegerToFloat", domain=_MICROSOFT)
def matmul_integer_to_float(call: ShapeCall, a: Fact, b: Fact, a_scale: Fact, b_scale: Fact, *others: Fact | None) -> Fact:
    """MatMul of integers in the type of the scales."""
    return tensor(a_scale.dtype, product_shape(a.shape, b.shape))


@shape_function("MatMulInteger16", domain=_MICROSOFT)
def matmul_integer16(call: ShapeCall, a: Fact, b: Fact) -> Fact:
    """MatMul of 16-bit integers into int32."""
    return tensor(DataType.INT32, product_shape(a.shape, b.shape))


@shape_function("FusedGemm", domain=_MICROSOFT)
def fused_gemm(call: ShapeCall, a: Fact, b: Fact, c: Fact | None = None, *, transA: int = 0, transB: int = 0) -> Fact:
    """(M, K) x (K, N) -> (M, N)."""
    return tensor(a.dtype, _gemm(a, b, transA, transB))


@shape_function("QGemm", domain=_MICROSOFT)
def qgemm(call: ShapeCall, a: Fact, a_scale: Fact, a_zero: Fact, b: Fact, b_scale: Fact, b_zero: Fact, c: Fact | None = None,
          y_scale: Fact | None = None, y_zero: Fact | None = None, *, transA: int = 0, transB: int = 0) -> Fact:  # fmt: skip
    """(M, K) x (K, N) -> (M, N), quantized where the output has a scale, else float."""
    return tensor(DataType.FLOAT if y_scale is None or y_zero is None else y_zero.dtype, _gemm(a, b, transA, transB))


def _gemm(a: Fact, b: Fact, transpose_a: int, transpose_b: int) -> Shape:
    first, second = require_rank(a, "A", 2, 2), require_rank(b, "B", 2, 2)
    M: Dim = anonymous() if first is None else first[1 if transpose_a else 0]
    N: Dim = anonymous() if second is None else second[0 if transpose_b else 1]
    return M, N


@shape_function("QLinearAdd", "QLinearMul", domain=_MICROSOFT)
def qlinear_binary(call: ShapeCall, a: Fact, a_scale: Fact, a_zero: Fact | None = None, b: Fact | None = None,
                   *others: Fact | None) -> Fact:  # fmt: skip
    """Both inputs are broadcast."""
    return tensor(a.dtype, None if b is None else broadcast((a.shape, b.shape)))


@shape_function("QLinearLeakyRelu", "QLinearSigmoid", "QLinearSoftmax", domain=_MICROSOFT)
def qlinear_unary(call: ShapeCall, x: Fact, *others: Fact | None) -> Fact:
    """The output is as the input."""
    return tensor(x.dtype, x.shape)


@shape_function("QLinearConcat", domain=_MICROSOFT)
def qlinear_concat(call: ShapeCall, y_scale: Fact, y_zero: Fact, *inputs: Fact | None, axis: int) -> Fact:
    """Tensors, each with its scale and zero point, one after the other along the axis."""
    shapes = [None if fact is None else fact.shape for fact in inputs[::3]]
    known = [shape for shape in shapes if shape is not None]
    if not known or len(known) < len(shapes):
        return tensor(y_zero.dtype, unknown_shape(len(known[0])) if known else None)
    place = normalize_axis(axis, len(known[0]))
    return tensor(y_zero.dtype, replace_dim(known[0], place, sum(shape[place] for shape in known)))


@shape_function("QLinearWhere", domain=_MICROSOFT)
def qlinear_where(call: ShapeCall, condition: Fact, x: Fact, x_scale: Fact, x_zero: Fact, y: Fact, *others: Fact | None) -> Fact:
    """All three are broadcast."""
    return tensor(x.dtype, broadcast((condition.shape, x.shape, y.shape)))


@shape_function("QLinearGlobalAveragePool", domain=_MICROSOFT)
def qlinear_global_average_pool(call: ShapeCall, x: Fact, *others: Fact | None, channels_last: int = 0) -> Fact:
    """Every spatial axis becomes 1."""
    shape = require_rank(x, "X", 3)
    if shape is None:
        return tensor(x.dtype)
    ones = (1,) * (len(shape) - 2)
    return tensor(x.dtype, (shape[0], *ones, shape[-1]) if channels_last else (*shape[:2], *ones))


@shape_function("QLinearAveragePool", domain=_MICROSOFT)
def qlinear_average_pool(call: ShapeCall, x: Fact, *others: Fact | None, kernel_shape: Sequence[int] = (),
                         strides: Sequence[int] | None = None, pads: Sequence[int] | None = None, auto_pad: str = "NOTSET",
                         ceil_mode: int = 0, channels_last: int = 0) -> Fact:  # fmt: skip
    """(N, C, spatial…) -> (N, C, places of the window…), or with the channels last."""
    shape = require_rank(x, "X", 3)
    if shape is None:
        return tensor(x.dtype)
    window = Window.of(tuple(kernel_shape), strides, None, pads, auto_pad, ceil_mode)
    if channels_last:
        return tensor(x.dtype, (shape[0], *slide(window, shape[1:-1]), shape[-1]))
    return tensor(x.dtype, (*shape[:2], *slide(window, shape[2:])))


@shape_function("BiasAdd", domain=_MICROSOFT)
def bias_add(call: ShapeCall, x: Fact, bias: Fact, skip: Fact) -> Fact:
    """The output is as the first input."""
    return tensor(x.dtype, x.shape)


@shape_function("BiasSplitGelu", domain=_MICROSOFT)
def bias_split_gelu(call: ShapeCall, x: Fact, bias: Fact) -> Fact:
    """The last axis is halved."""
    return tensor(x.dtype, None if not x.shape else (*x.shape[:-1], x.shape[-1] // 2))
