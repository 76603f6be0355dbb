"""Matrix products and fused convolutions of com.microsoft."""

from __future__ import annotations

from sardonyx.dtypes import DataType
from sardonyx.errors import InvalidGraph
from sardonyx.ir import Dim, Shape
from sardonyx.ir.shape import anonymous
from sardonyx.ops.fact import Fact, ShapeCall, dims_text, shape_function, tensor
from sardonyx.ops.shapes.axes import require_rank
from sardonyx.ops.shapes.conv import conv_shape
from sardonyx.ops.shapes.elements import dims_of
from sardonyx.ops.shapes.matmul import product_shape
from sardonyx.ops.views.conv import Conv
from sardonyx.ops.views.matmul import Gemm

__all__: list[str] = []

_MICROSOFT = "com.microsoft"


@shape_function("MatMulNBits", domain=_MICROSOFT)
def matmul_nbits(call: ShapeCall, a: Fact, b: Fact, scales: Fact, *others: Fact | None, K: int, N: int) -> Fact:
    """Infer (…, K) x packed (N, blocks, bytes) -> (…, N)."""
    if a.shape is None:
        return tensor(a.dtype)
    if not a.shape or (isinstance(a.shape[-1], int) and a.shape[-1] != K):
        raise InvalidGraph(f"A of shape {dims_text(a.shape)} does not end in K={K}")
    return tensor(a.dtype, (*a.shape[:-1], N))


@shape_function("MatMulFpQ4", domain=_MICROSOFT)
def matmul_fp_q4(call: ShapeCall, a: Fact, b: Fact, b_shape: Fact) -> Fact:
    """Infer (…, K) x packed (K, N) -> (…, N), where N is an element of the last input."""
    sizes = dims_of(b_shape)
    N = sizes[1] if sizes is not None and len(sizes) == 2 else None
    return tensor(a.dtype, None if not a.shape else (*a.shape[:-1], anonymous() if N is None else N))


@shape_function("MatMulBlockQuantizedFp4Weight", "MatMulBlockQuantizedFp8Weight", domain=_MICROSOFT)
def matmul_block_weight(call: ShapeCall, a: Fact, b: Fact, *others: Fact | None) -> Fact:
    """Infer (…, K) x transposed (N, K), perhaps packed -> (…, N)."""
    weights = require_rank(b, "B", 2, 2)
    return tensor(a.dtype, None if not a.shape else (*a.shape[:-1], anonymous() if weights is None else weights[0]))


@shape_function("FusedMatMul", "FusedMatMulActivation", "SparseToDenseMatMul", "TransposeMatMul", domain=_MICROSOFT)
def fused_matmul(
    call: ShapeCall, a: Fact, b: Fact, *, transA: int = 0, transB: int = 0, transBatchA: int = 0, transBatchB: int = 0
) -> Fact:
    """Return MatMul of inputs that may be transposed in the last two axes, or have their batch next to the last axis."""
    if a.shape is None or b.shape is None:
        return tensor(a.dtype)
    return tensor(a.dtype, product_shape(_transposed(a.shape, transA, transBatchA), _transposed(b.shape, transB, transBatchB)))


def _transposed(shape: Shape, transpose: int, transpose_batch: int) -> Shape:
    if len(shape) < 2:
        return shape
    if transpose_batch:
        shape = (*shape[1:-1], shape[0], shape[-1])
    return (*shape[:-2], shape[-1], shape[-2]) if transpose else shape


@shape_function("DynamicQuantizeMatMul", domain=_MICROSOFT)
def dynamic_quantize_matmul(call: ShapeCall, a: Fact, b: Fact, b_scale: Fact, *others: Fact | None) -> Fact:
    """Return MatMul in the type of the first input."""
    return tensor(a.dtype, product_shape(a.shape, b.shape))


@shape_function("MatMulIntegerToFloat", domain=_MICROSOFT)
def matmul_integer_to_float(call: ShapeCall, a: Fact, b: Fact, a_scale: Fact, b_scale: Fact, *others: Fact | None) -> Fact:
    """Return MatMul of integers in the type of the scales."""
    return tensor(a_scale.dtype, product_shape(a.shape, b.shape))


@shape_function("MatMulInteger16", domain=_MICROSOFT)
def matmul_integer16(call: ShapeCall, a: Fact, b: Fact) -> Fact:
    """Return MatMul of 16-bit integers into int32."""
    return tensor(DataType.INT32, product_shape(a.shape, b.shape))


@shape_function("FusedGemm", domain=_MICROSOFT)
def fused_gemm(call: ShapeCall, a: Fact, b: Fact, c: Fact | None = None) -> Fact:
    """Infer (M, K) x (K, N) -> (M, N)."""
    return tensor(a.dtype, gemm_shape(Gemm.of(call), a, b))


def gemm_shape(view: Gemm, a: Fact, b: Fact) -> Shape:
    """Return (M, N) of (M, K) x (K, N), each of which may be transposed."""
    first, second = require_rank(a, "A", 2, 2), require_rank(b, "B", 2, 2)
    M: Dim = anonymous() if first is None else first[1 if view.transposes_a else 0]
    N: Dim = anonymous() if second is None else second[view.column_axis]
    return M, N


@shape_function("FusedConv", domain=_MICROSOFT)
def fused_conv(
    call: ShapeCall,
    x: Fact,
    w: Fact,
    b: Fact | None = None,
    z: Fact | None = None,
) -> Fact:
    """Infer as for Conv; what is added before the activation has the output's shape."""
    return tensor(x.dtype, conv_shape(Conv.of(call), x, w))


@shape_function("MatMulBnb4", domain=_MICROSOFT)
def matmul_bnb4(call: ShapeCall, a: Fact, b: Fact, absmax: Fact, *, K: int, N: int) -> Fact:
    """Infer (…, K) x packed (K, N) -> (…, N)."""
    return tensor(a.dtype, None if not a.shape else (*a.shape[:-1], N))
