"""Softmax and its kin: along one axis since opset 13, over a matrix made of the tensor before."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from sardonyx.dtypes import Array
from sardonyx.ops.views.softmax import Softmax
from sardonyx.providers.reference.algorithms.blocks import row_blocks
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
    """Return `function` along axis 1 of `x`, some rows (axis 0) at a time so that they stay in cache; the type of `x`, dense."""
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


def _kernel(function: RowFunction) -> KernelFunction:
    """Return the kernel that applies `function` to each row of x; same shape and type out."""

    @quiet
    def apply(_node: Call, x: Array, *, view: Softmax) -> Array:
        shape = x.shape or (1,)
        row = view.row(len(shape))
        rows, size, inner = (math.prod(part) for part in (shape[: row.start], shape[row.start : row.stop], shape[row.stop :]))
        matrix = x.reshape(rows, size) if inner == 1 else x.reshape(rows, size, inner)
        return softmax_rows(function, matrix).reshape(x.shape)

    return apply


_FUNCTIONS: dict[str, RowFunction] = {
    "Hardmax": hardmax_into,
    "LogSoftmax": log_softmax_into,
    "Softmax": softmax_into,
}

for _name, _function in _FUNCTIONS.items():
    kernel(_name, since=1, view=Softmax)(_kernel(_function))
    kernel(_name, since=13, view=Softmax)(_kernel(_function))
