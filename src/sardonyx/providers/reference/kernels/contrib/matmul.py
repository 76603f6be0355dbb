"""Matrix products and convolutions of com.microsoft: fused with transposes, activations, scales, and on packed weights."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ir.attribute import AttributeValue
from sardonyx.providers.reference.algorithms.packed_weights import BITS, WIDTHS, unpack
from sardonyx.providers.reference.algorithms.precision import widen
from sardonyx.providers.reference.algorithms.product import check_product, multiply
from sardonyx.providers.reference.kernels.delegate import activate, run_standard
from sardonyx.providers.reference.registry import Call, kernel

__all__ = [
    "dynamic_quantize_matmul",
    "fused_conv",
    "fused_gemm",
    "fused_matmul",
    "fused_matmul_activation",
    "matmul_integer_16",
    "matmul_integer_to_float",
    "matmul_n_bits",
    "sparse_to_dense_matmul",
]

_MICROSOFT = "com.microsoft"
_BLOCK_ELEMENTS = 1 << 18
"""Weights unpacked at a time: 1 MiB of float32, which the product then reads from cache."""
_FEW_ROWS = 8
"""Up to here the product costs less than the passes that scale unpacked weights."""


@kernel("TransposeMatMul", domain=_MICROSOFT)
@kernel("FusedMatMul", domain=_MICROSOFT)
def fused_matmul(
    call: Call,
    a: Array,
    b: Array,
    *,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Array:
    """Return alpha a' b' of stacks of matrices; transBatch moves the first axis behind the batch axes, trans swaps the last two.

    Transposing a vector changes nothing. Source: com.microsoft FusedMatMul.
    """
    left, right = _arrange(a, transA, transBatchA), _arrange(b, transB, transBatchB)
    check_product(left, right)
    y = multiply(widen(left), widen(right))
    if alpha != 1:
        y *= y.dtype.type(alpha)
    return y.astype(a.dtype, copy=False)


@kernel("SparseToDenseMatMul", domain=_MICROSOFT)
def sparse_to_dense_matmul(call: Call, a: Array, b: Array, *, alpha: float = 1.0, transA: int = 0, transB: int = 0) -> Array:
    """Return alpha a' b' of a sparse matrix, which is dense here, and a dense one. Source: com.microsoft SparseToDenseMatMul."""
    y: Array = fused_matmul(call, a, b, alpha=alpha, transA=transA, transB=transB)
    return y


@kernel("FusedMatMulActivation", domain=_MICROSOFT)
def fused_matmul_activation(
    call: Call,
    a: Array,
    b: Array,
    *,
    activation: str,
    activation_alpha: float | None = None,
    activation_axis: int = -1,
    activation_beta: float | None = None,
    alpha: float = 1.0,
    transA: int = 0,
    transB: int = 0,
    transBatchA: int = 0,
    transBatchB: int = 0,
) -> Array:
    """Compute FusedMatMul, then the activation, which may be Softmax along an axis. Source: com.microsoft FusedMatMulActivation."""
    turns = {"transA": transA, "transB": transB, "transBatchA": transBatchA, "transBatchB": transBatchB}
    y = fused_matmul(call, a, b, alpha=alpha, **turns)
    if activation == "Softmax":
        made: Array = run_standard("Softmax", y, axis=activation_axis)
        return made
    return activate(y, activation, [value for value in (activation_alpha, activation_beta) if value is not None])


@kernel("FusedGemm", domain=_MICROSOFT)
def fused_gemm(
    call: Call,
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    activation: str = "",
    activation_alpha: float | None = None,
    activation_beta: float | None = None,
    alpha: float = 1.0,
    beta: float = 1.0,
    transA: int = 0,
    transB: int = 0,
) -> Array:
    """Compute Gemm, then the activation. Source: com.microsoft FusedGemm."""
    y = run_standard("Gemm", a, b, c, alpha=alpha, beta=beta, transA=transA, transB=transB)
    return activate(y, activation, [value for value in (activation_alpha, activation_beta) if value is not None])


@kernel("FusedConv", domain=_MICROSOFT)
def fused_conv(
    call: Call,
    x: Array,
    w: Array,
    b: Array | None = None,
    z: Array | None = None,
    *,
    activation: str = "",
    activation_params: Sequence[float] = (),
    auto_pad: str = "NOTSET",
    dilations: Sequence[int] = (),
    group: int = 1,
    kernel_shape: Sequence[int] = (),
    pads: Sequence[int] = (),
    strides: Sequence[int] = (),
) -> Array:
    """Compute Conv, plus Z of the shape of its result, then the activation. Source: com.microsoft FusedConv."""
    lists = {"dilations": dilations, "kernel_shape": kernel_shape, "pads": pads, "strides": strides}
    given: dict[str, AttributeValue] = {name: values for name, values in lists.items() if values}
    y = run_standard("Conv", x, w, b, auto_pad=auto_pad, group=group, **given)
    if z is not None:
        if z.shape != y.shape:
            raise InvalidArgument(f"Z has shape {z.shape}; it is added to the convolution's result, of shape {y.shape}")
        y = (widen(y) + widen(z)).astype(y.dtype, copy=False)
    return activate(y, activation, activation_params)


@kernel("MatMulIntegerToFloat", domain=_MICROSOFT)
def matmul_integer_to_float(
    call: Call,
    a: Array,
    b: Array,
    a_scale: Array,
    b_scale: Array,
    a_zero_point: Array | None = None,
    b_zero_point: Array | None = None,
    bias: Array | None = None,
) -> Array:
    """Multiply 8-bit integers exactly, then by a_scale b_scale, plus bias; scales and zero points of b may go by column.

    The result has the type of a_scale. Source: com.microsoft MatMulIntegerToFloat.
    """
    if a.ndim < 1 or b.ndim < 2:
        raise InvalidArgument(f"A has shape {a.shape} and B {b.shape}; expected (..., K) and (..., K, N)")
    total = run_standard("MatMulInteger", a, b, a_zero_point, b_zero_point)
    y = total.astype(np.float32)
    y *= _scale("a_scale", a_scale, 1) * _scale("b_scale", b_scale, y.shape[-1])
    if bias is not None:
        y += _scale("bias", bias, y.shape[-1])
    return np.asarray(y, a_scale.dtype)


@kernel("DynamicQuantizeMatMul", domain=_MICROSOFT)
def dynamic_quantize_matmul(
    call: Call, a: Array, b: Array, b_scale: Array, b_zero_point: Array | None = None, bias: Array | None = None
) -> Array:
    """Quantize a to 8 bits by its own range, multiply integers, and scale back. Source: com.microsoft DynamicQuantizeMatMul."""
    quantized, a_scale, a_zero_point = run_standard("DynamicQuantizeLinear", a, outputs=3)
    y: Array = matmul_integer_to_float(call, quantized, b, a_scale, b_scale, a_zero_point, b_zero_point, bias)
    return y


@kernel("MatMulInteger16", domain=_MICROSOFT)
def matmul_integer_16(call: Call, a: Array, b: Array) -> Array:
    """Multiply int16 matrices into int32, which wraps. Source: com.microsoft MatMulInteger16."""
    check_product(a, b)
    return multiply(a.astype(np.float64), b.astype(np.float64)).astype(np.int64).astype(np.int32)


@kernel("MatMulNBits", domain=_MICROSOFT)
def matmul_n_bits(
    call: Call,
    a: Array,
    b: Array,
    scales: Array,
    zero_points: Array | None = None,
    g_idx: Array | None = None,
    bias: Array | None = None,
    *,
    K: int,
    N: int,
    accuracy_level: int = 0,
    bits: int = 4,
    block_size: int,
    weight_prepacked: int = 0,
) -> Array:
    """Multiply a (..., K) by weights (K, N) that are packed by output and by block of K: b (N, blocks, block_size x bits / 8).

    A weight is (number - zero point) x scale; scales are (N, blocks), zero points packed like b or floats like the scales, by
    default half the range. `accuracy_level` allows, and this kernel declines, a product in int8. Source: com.microsoft MatMulNBits.
    """
    blocks = _check_packed(a, b, scales, K, N, bits, block_size, weight_prepacked)
    scale = widen(scales).reshape(N, blocks)
    zero = None if zero_points is None else _read_zero_points(zero_points, N, blocks, bits)
    groups = None if g_idx is None else _check_groups(g_idx, K, blocks)
    rows = np.ascontiguousarray(widen(a).reshape(-1, K))
    y = np.empty((len(rows), N), rows.dtype)
    packed = b.reshape(N, blocks, block_size * bits // 8)
    step = max(1, _BLOCK_ELEMENTS // max(1, blocks * block_size))
    for start in range(0, N, step):
        check_cancelled()
        part = slice(start, min(N, start + step))
        zero_part = None if zero is None else zero[part]
        if len(rows) <= _FEW_ROWS and groups is None and bits in BITS:
            y[:, part] = _multiply_few(rows, packed[part], bits, scale[part], zero_part)
            continue
        weights = unpack(packed[part], bits, 0 if zero is not None else 1 << (bits - 1))
        np.matmul(rows, _scale_weights(weights, scale[part], zero_part, groups, K).T, out=y[:, part])
    if bias is not None:
        y += _scale("bias", bias, N)
    return y.reshape(*a.shape[:-1], N).astype(a.dtype, copy=False)


def _multiply_few(rows: Array, packed: Array, bits: int, scale: Array, zero: Array | None) -> Array:
    """Multiply `rows` (M, K) by weights whose numbers are `packed` (N, blocks, bytes), as (M, N).

    The numbers at each place of a byte are multiplied by the columns that they stand at; zero points and scales apply to the sums
    of whole blocks. That spares passes over all weights, which is what counts where each weight meets few rows. Numbers are taken
    less half of their range, so that zero points near it leave little to cancel.
    """
    _, blocks, size = packed.shape
    places, half = 8 // bits, 1 << (bits - 1)
    padded = np.zeros((len(rows), blocks * size * places), rows.dtype)
    padded[:, : rows.shape[1]] = rows
    columns = padded.reshape(len(rows), blocks, size, places)
    sums = np.zeros((blocks, len(packed), len(rows)), rows.dtype)
    for place in range(places):
        numbers = (packed >> (bits * place) & ((1 << bits) - 1)).astype(rows.dtype)
        numbers -= half
        sums += np.matmul(numbers.transpose(1, 0, 2), columns[:, :, :, place].transpose(1, 2, 0))
    if zero is not None:
        sums -= (zero.T[:, :, None] - half) * columns.sum(axis=(2, 3)).T[:, None]
    sums *= scale.T[:, :, None]
    products: Array = sums.sum(axis=0)
    return products.T


def _scale_weights(weights: Array, scale: Array, zero: Array | None, groups: Array | None, K: int) -> Array:
    """Return the weights (rows, K) from `weights` (rows, blocks, block), which is overwritten.

    `groups` names the block of each column.
    """
    if groups is None:
        if zero is not None:
            weights -= zero[:, :, None]
        weights *= scale[:, :, None]
    flat = weights.reshape(len(weights), weights.shape[1] * weights.shape[2])[:, :K]
    if groups is not None:
        flat -= 0 if zero is None else zero[:, groups]
        flat *= scale[:, groups]
    return flat


def _arrange(x: Array, transposed: int, batch_transposed: int) -> Array:
    if x.ndim < 2:
        return x
    if batch_transposed:
        x = np.moveaxis(x, 0, -2)
    return x.swapaxes(-1, -2) if transposed else x


def _scale(name: str, values: Array, columns: int) -> Array:
    """Return a scale or bias in float32 that broadcasts along the columns."""
    if values.size == 1:
        return values.astype(np.float32).reshape(())
    if values.shape != (columns,):
        raise InvalidArgument(f"{name} has shape {values.shape}; expected one element or ({columns},)")
    return values.astype(np.float32, copy=False)


def _check_packed(a: Array, b: Array, scales: Array, K: int, N: int, bits: int, block_size: int, prepacked: int) -> int:
    """Return the number of blocks; raises InvalidArgument where shapes and attributes disagree."""
    if prepacked:
        raise InvalidArgument(f"weight_prepacked is {prepacked}: the weights are in a layout of a CUDA kernel; export them with 0")
    if bits not in WIDTHS or block_size < 16 or block_size & (block_size - 1):
        raise InvalidArgument(f"bits is {bits} and block_size {block_size}; expected 2 to 8, and a power of two from 16 on")
    if a.ndim < 1 or a.shape[-1] != K:
        raise InvalidArgument(f"A has shape {a.shape}; its last dimension must be K, {K}")
    if b.dtype != np.uint8:
        raise InvalidArgument(f"B is of {b.dtype}; expected uint8, bytes in which numbers of {bits} bits are packed")
    blocks = -(-K // block_size)
    if b.size != N * blocks * block_size * bits // 8 or scales.size != N * blocks:
        raise InvalidArgument(
            f"B has shape {b.shape} and scales {scales.shape}; K {K}, N {N}, bits {bits} and block_size {block_size} make them "
            f"({N}, {blocks}, {block_size * bits // 8}) and ({N}, {blocks})"
        )
    return blocks


def _read_zero_points(zero_points: Array, N: int, blocks: int, bits: int) -> Array:
    """Return zero points (N, blocks) in float32."""
    if zero_points.dtype != np.uint8:
        if zero_points.size != N * blocks:
            raise InvalidArgument(f"zero_points has shape {zero_points.shape}; as floats they are ({N}, {blocks})")
        return widen(zero_points).reshape(N, blocks)
    per_row = -(-blocks * bits // 8)
    if zero_points.size != N * per_row:
        raise InvalidArgument(f"zero_points has shape {zero_points.shape}; packed they are ({N}, {per_row})")
    return unpack(zero_points.reshape(N, per_row), bits)[:, :blocks]


def _check_groups(g_idx: Array, K: int, blocks: int) -> Array:
    if g_idx.dtype.kind not in "iu":
        raise InvalidArgument(f"g_idx is of {g_idx.dtype}; expected int32 group numbers")
    groups = g_idx.reshape(-1)[:K]
    if groups.size != K or (K and (groups.min() < 0 or groups.max() >= blocks)):
        raise InvalidArgument(f"g_idx has shape {g_idx.shape}; expected {K} group numbers below {blocks}")
    return groups
