"""Matrix products that always reach BLAS: numpy.matmul falls back to plain loops on layouts that BLAS cannot read."""

from __future__ import annotations

import math

import numpy as np

from sardonyx.cancellation import check_cancelled
from sardonyx.dtypes import Array
from sardonyx.errors import InvalidArgument
from sardonyx.providers.reference.algorithms.dimensions import check_output_size

__all__ = ["check_product", "matmul_in_parts", "multiply"]


def check_product(a: Array, b: Array) -> None:
    """Raise InvalidArgument unless numpy.matmul takes a and b."""
    if a.ndim == 0 or b.ndim == 0:
        raise InvalidArgument(f"A has shape {a.shape} and B has shape {b.shape}, expected no scalars; use Mul")
    inner = b.shape[-2] if b.ndim > 1 else b.shape[0]
    if a.shape[-1] != inner:
        raise InvalidArgument(f"A has shape {a.shape} and B has shape {b.shape}: inner lengths {a.shape[-1]} and {inner} differ")
    try:
        np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise InvalidArgument(
            f"A has shape {a.shape} and B has shape {b.shape}: leading axes {a.shape[:-2]} and {b.shape[:-2]} do not broadcast"
        ) from None
    if a.size * b.size > _MANY:
        batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        check_output_size((*batch, *a.shape[-2:-1], *(b.shape[-1:] if b.ndim > 1 else ())), max(a.itemsize, b.itemsize))


_MANY = 1 << 28
"""Products of no more elements than this in A times those in B need no further check: no limit is so low."""


def multiply(a: Array, b: Array) -> Array:
    """Return numpy.matmul(a, b) of checked operands of one type; a stack of matrices times one matrix is a single product."""
    if a.dtype.kind == "f":
        a, b = _readable(a), _readable(b)
    if a.ndim > 2 and b.ndim == 2 and a.size > 0 and a.flags.c_contiguous:
        rows = matmul_in_parts(a.reshape(-1, a.shape[-1]), b)
        return rows.reshape(*a.shape[:-1], b.shape[1])
    return matmul_in_parts(a, b)


def matmul_in_parts(a: Array, b: Array) -> Array:
    """Return numpy.matmul(a, b), some rows or matrices at a time where it takes long; ends where the run is to end."""
    most = _MOST_PRODUCTS if a.dtype.kind == b.dtype.kind == "f" else _MOST_PLAIN_PRODUCTS
    if a.size * b.size <= most or min(a.ndim, b.ndim) < 2:
        return np.asarray(np.matmul(a, b))
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    y = np.empty((*batch, a.shape[-2], b.shape[-1]), np.result_type(a, b))
    _fill(np.broadcast_to(a, (*batch, *a.shape[-2:])), np.broadcast_to(b, (*batch, *b.shape[-2:])), y, most)
    return y


_MOST_PRODUCTS = 1 << 28
"""How many products of elements BLAS sums up between two checks: about 10 ms."""
_MOST_PLAIN_PRODUCTS = 1 << 23
"""The same of NumPy's own loops."""


def _fill(a: Array, b: Array, y: Array, most: int) -> None:
    """Write the product of a (…, M, K) and b (…, K, N) into y (…, M, N), about `most` products of elements at a time."""
    own = math.prod(y.shape[1:]) * a.shape[-1]
    if y.ndim > 2 and own > most:
        for place in range(len(y)):
            _fill(a[place], b[place], y[place], most)
        return
    step = max(1, most // max(own, 1))
    for start in range(0, len(y), step):
        check_cancelled()
        part = slice(start, start + step)
        np.matmul(a[part], b if y.ndim == 2 else b[part], out=y[part])


def _readable(x: Array) -> Array:
    """Return X itself where BLAS reads its matrices: one axis dense, the other's stride at least as long; else a dense copy."""
    if x.ndim < 2 or x.flags.c_contiguous:
        return x
    (rows, columns), (down, across) = x.shape[-2:], (stride // x.itemsize for stride in x.strides[-2:])
    if (across == 1 and down >= columns) or (down == 1 and across >= rows):
        return x
    return np.ascontiguousarray(x)
