"""Softmax and its kin: along one axis since opset 13, over a matrix made of the tensor before."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.providers.reference.algorithms.blocks import row_blocks
from sardonyx.providers.reference.algorithms.dimensions import normalize_axis
from sardonyx.providers.reference.algorithms.precision import compute_type, quiet
from sardonyx.providers.reference.registry import Call, KernelFunction, kernel

__all__ = ["hardmax_into", "log_softmax_into", "softmax_into", "softmax_rows"]

RowFunction = Callable[[Array, Array], None]
"""Fills the second array from the first along axis 1; both of rank 2 or 3, in the compute type, and possibly the same."""


def softmax_into(x: Array, out: Array) -> None:
    """Write exp(x - max) divided by its sum along axis 1; nothing overflows."""
    np.subtract(x, x.max(axis=1, keepdims=True), out=out)
    np.exp(out, out=out)
    np.divide(out, np.add.reduce(out, axis=1, keepdims=True), out=out)


def log_softmax_into(x: Array, out: Array) -> None:
    """Write x - max - log(sum of exp(x - max)) along axis 1; nothing overflows."""
    np.subtract(x, x.max(axis=1, keepdims=True), out=out)
    np.subtract(out, np.log(np.add.reduce(np.exp(out), axis=1, keepdims=True)), out=out)


def hardmax_into(x: Array, out: Array) -> None:
    """Write 1 at the first maximum along axis 1, 0 elsewhere."""
    index = np.argmax(x, axis=1, keepdims=True)
    out[...] = 0
    np.put_along_axis(out, index, 1, axis=1)


def softmax_rows(function: RowFunction, x: Array) -> Array:
    """`function` along axis 1 of `x`, some rows (axis 0) at a time so that they stay in cache; the type of `x`, dense."""
    out = np.empty(x.shape, x.dtype)
    wide = compute_type(x.dtype)
    for block in row_blocks(x):
        if wide == x.dtype:
            function(x[block], out[block])
            continue
        exact = x[block].astype(wide)
        function(exact, exact)
        out[block] = exact
    return out


def _along_axis(function: RowFunction) -> KernelFunction:
    """The kernel from opset 13 on: along `axis` of x; same shape and type out."""

    @quiet
    def apply(_node: Call, x: Array, *, axis: int = -1) -> Array:
        axis = normalize_axis(axis, max(x.ndim, 1))
        shape = x.shape or (1,)
        inner = math.prod(shape[axis + 1 :])
        rows = math.prod(shape[:axis])
        matrix = x.reshape(rows, shape[axis]) if inner == 1 else x.reshape(rows, shape[axis], inner)
        return softmax_rows(function, matrix).reshape(x.shape)

    return apply


def _over_matrix(function: RowFunction) -> KernelFunction:
    """The kernel before opset 13: the axes before `axis` make the rows, the others the columns; same shape and type out."""

    @quiet
    def apply(_node: Call, x: Array, *, axis: int = 1) -> Array:
        axis = axis if axis == x.ndim else normalize_axis(axis, x.ndim)
        rows = x.reshape(math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
        return softmax_rows(function, rows).reshape(x.shape)

    return apply


_FUNCTIONS: dict[str, RowFunction] = {
    "Hardmax": hardmax_into,
    "LogSoftmax": log_softmax_into,
    "Softmax": softmax_into,
}

for _name, _function in _FUNCTIONS.items():
    kernel(_name, since=1)(_over_matrix(_function))
    kernel(_name, since=13)(_along_axis(_function))
