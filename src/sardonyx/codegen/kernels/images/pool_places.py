"""Find the greatest element of each window, and where it is; the second output of ONNX MaxPool.

Of equal ones the first in row-major order counts; NaN is the greatest. A window that meets no element gives the least number, at
element 0 of its plane.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import prod

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import BOOL, I32, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register, Span
from sardonyx.codegen.emit.window import AXIS_WORDS, AxisValues, read_axes

__all__ = ["write_pool_places"]

X, Y, INDICES = range(3)
"""The buffers of the kernel."""


def write_pool_places(module: Module, symbol: str, kind: Type, rank: int) -> None:
    """Write the kernel `symbol`; a task is one row of places along the last axis.

    Parameters: the words of the axes, with `in_step` for a plane alone, then for each axis from one element to the next as indices
    count them. A plane has fewer than 2^31 elements.
    """
    with module.kernel(symbol) as b:
        axes = read_axes(b, 0, rank)
        steps = [b.param(rank * AXIS_WORDS + axis) for axis in range(rank)]
        one = b.const(I64, 1)
        outer = axes[:-1]
        plane = prod((axis["size"] for axis in axes), start=one)
        rows, outer_taps = (prod((axis[name] for axis in outer), start=one) for name in ("places", "taps"))
        width = axes[-1]["places"]
        with b.loop(b.begin, b.end) as task:
            base = task // rows * plane
            x, y, indices = b.buffer(X, kind).at(base), b.buffer(Y, kind).at(task * width), b.buffer(INDICES, I64).at(task * width)
            for i, span in b.vectors(0, width, kind):
                best = b.variable(b.const(kind.vector(span.lanes), -math.inf))
                place = b.variable(b.const(I32.vector(span.lanes), -1))
                first = (b.iota(I32, span.lanes) + i.to(I32)) * axes[-1]["stride"].to(I32) - axes[-1]["begin"].to(I32)
                with b.loop(0, outer_taps) as tap:
                    offset, number, meets = _outer_element(b, outer, steps, task % rows, tap)
                    with b.when(meets), b.loop(0, axes[-1]["taps"]) as along:
                        at = first + (along * axes[-1]["dilation"]).to(I32)
                        inside = (at >= 0) & (at < axes[-1]["size"].to(I32))
                        element = _element(b, x.at(offset), at, inside, span)
                        is_better = (element > best.value) | (place.value < 0) | (b.is_nan(element) & ~b.is_nan(best.value))
                        taken = inside & is_better
                        best.set(b.select(taken, element, best.value))
                        place.set(b.select(taken, at * steps[-1].to(I32) + number.to(I32), place.value))
                y.store(best.value, i, span)
                indices.store(b.max(place.value, 0).to(I64) + base, i, span)


def _outer_element(
    b: Kernel, axes: Sequence[AxisValues], steps: Sequence[Register], row: Register, tap: Register
) -> tuple[Register, Register, Register]:
    """Return where a tap of the outer axes lies, its number as indices count, and whether it is inside."""
    offset, number, meets = b.const(I64, 0), b.const(I64, 0), b.const(BOOL, True)
    row_rest, tap_rest = row, tap
    for axis, step in zip(reversed(axes), reversed(steps[:-1]), strict=True):
        at = row_rest % axis["places"] * axis["stride"] + tap_rest % axis["taps"] * axis["dilation"] - axis["begin"]
        row_rest, tap_rest = row_rest // axis["places"], tap_rest // axis["taps"]
        meets = meets & (at >= 0) & (at < axis["size"])
        offset, number = offset + at * axis["in_step"], number + at * step
    return offset, number, meets


def _element(b: Kernel, row: Pointer, at: Register, inside: Register, span: Span) -> Register:
    if span.lanes == 1:
        return row.load(b.select(inside, at, 0))
    return row.gather(at, inside if span.mask is None else inside & span.mask)
