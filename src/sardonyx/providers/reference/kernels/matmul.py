"""Reference kernels of matrix products: MatMul, Gemm, MatMulInteger, QLinearMatMul, Det."""

from __future__ import annotations

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.ops.views.matmul import Gemm
from sardonyx.providers.reference.algorithms.exact import multiply_integers
from sardonyx.providers.reference.algorithms.precision import quiet, widen
from sardonyx.providers.reference.algorithms.product import check_product, multiply
from sardonyx.providers.reference.algorithms.requantize import requantize
from sardonyx.providers.reference.registry import Call, kernel

__all__: list[str] = []


@kernel("MatMul")
@quiet
def matmul(node: Call, a: Array, b: Array) -> Array:
    """Compute the product of a (..., M, K) and b (..., K, N) as numpy.matmul takes it: vectors allowed, leading axes broadcast.

    Half types multiply in float32; integers wrap. Source: ONNX MatMul-13.
    """
    check_product(a, b)
    return multiply(widen(a), widen(b)).astype(a.dtype, copy=False)


@kernel("Gemm", view=Gemm)
@quiet
def gemm(
    node: Call,
    a: Array,
    b: Array,
    c: Array | None = None,
    *,
    view: Gemm,
) -> Array:
    """Return alpha * a' b' + beta * c for matrices a' (M, K), b' (K, N) and c broadcast to (M, N). Source: ONNX Gemm-13.

    A transposed operand is given by its transpose. Half types compute in float32; integers round alpha and beta's products
    towards zero. `broadcast` of versions 1 and 6 only allowed what is always allowed since 7.
    """
    if a.ndim != 2 or b.ndim != 2:
        raise InvalidArgument(f"A has shape {a.shape} and B has shape {b.shape}, expected matrices")
    left, right = widen(a.T if view.transposes_a else a), widen(b.T if view.transposes_b else b)
    check_product(left, right)
    y = _scaled(multiply(left, right), view.alpha)
    if c is not None:
        _check_addend(c, y.shape)
        y += _scaled(widen(c), view.beta)
    return y.astype(a.dtype, copy=False)


def _scaled(x: Array, factor: float) -> Array:
    if factor == 1.0:
        return x
    return (x * factor).astype(x.dtype, copy=False) if x.dtype.kind in "iu" else x * x.dtype.type(factor)


def _check_addend(c: Array, shape: tuple[int, ...]) -> None:
    try:
        fits = np.broadcast_shapes(c.shape, shape) == shape
    except ValueError:
        fits = False
    if not fits:
        raise InvalidArgument(f"C has shape {c.shape}, which does not broadcast to the product's {shape}")


@kernel("MatMulInteger", since=10)
def matmul_integer(node: Call, a: Array, b: Array, a_zero_point: Array | None = None, b_zero_point: Array | None = None) -> Array:
    """Multiply (a - a_zero_point) by (b - b_zero_point), 8-bit integers, exactly into int32.

    Zero points are scalars, one per row of a, one per column of b. Source: ONNX MatMulInteger-10.
    """
    check_product(a, b)
    return _integer_product(_shifted(a, a_zero_point, "a_zero_point", -2), _shifted(b, b_zero_point, "b_zero_point", -1))


@kernel("QLinearMatMul", since=10)
@quiet
def qlinear_matmul(
    node: Call,
    a: Array,
    a_scale: Array,
    a_zero_point: Array,
    b: Array,
    b_scale: Array,
    b_zero_point: Array,
    y_scale: Array,
    y_zero_point: Array,
) -> Array:
    """Multiply quantized a by quantized b and quantize to y_zero_point's type. Source: ONNX QLinearMatMul-21.

    Scales and zero points of a are scalars or one per row, of b scalars or one per column. 8-bit integers multiply exactly,
    float8 in float32; the scaling is float32.
    """
    check_product(a, b)
    left, right = _shifted(a, a_zero_point, "a_zero_point", -2), _shifted(b, b_zero_point, "b_zero_point", -1)
    total = multiply(left, right) if left.dtype == np.float32 else _integer_product(left, right)
    factors = (_along(a_scale, a, -2, "a_scale"), _along(b_scale, b, -1, "b_scale"))
    return requantize(total, *factors, y_scale, y_zero_point)


def _integer_product(a: Array, b: Array) -> Array:
    rows, columns = (a[None] if a.ndim == 1 else a), (b[:, None] if b.ndim == 1 else b)
    y = multiply_integers(rows, columns)
    y = y[..., 0, :] if a.ndim == 1 else y
    return y[..., 0] if b.ndim == 1 else y


def _shifted(x: Array, zero_point: Array | None, name: str, axis: int) -> Array:
    """Subtract zero_point from x: integers into int16, float8 into float32."""
    wide = np.int16 if x.dtype.kind in "iu" else np.float32
    if zero_point is None:
        return x.astype(wide)
    shifted: Array = x.astype(wide) - _along(zero_point, x, axis, name).astype(wide)
    return shifted


def _along(values: Array, x: Array, axis: int, name: str) -> Array:
    """Shape `values`, a scalar or one value per index of `axis` (-2 rows, -1 columns) of x, to broadcast with x."""
    if values.size == 1:
        return values.reshape(())
    length = x.shape[axis] if x.ndim > 1 else 0
    full = (*x.shape[:-2], length, 1) if axis == -2 else (*x.shape[:-2], 1, length)
    if values.shape == (length,):
        return values.reshape(full[-2:])
    if values.shape == full:
        return values
    raise InvalidArgument(
        f"{name} has shape {values.shape} for a tensor of shape {x.shape}, expected a scalar, ({length},) or {full}"
    )


@kernel("Det", since=11)
@quiet
def det(node: Call, x: Array) -> Array:
    """Compute the determinants (...) of the square matrices x (..., M, M); half types in float32. Source: ONNX Det-22."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise InvalidArgument(f"X has shape {x.shape}, expected square matrices (..., M, M)")
    return np.asarray(np.linalg.det(widen(x)), x.dtype)
