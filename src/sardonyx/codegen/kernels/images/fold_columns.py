"""Add the columns of windows up to images; ONNX Col2Im.

    y[n, c, place * stride + tap * dilation - begin] += x[n, (c, tap), place]

for all taps and places that lie in the image, tap by tap: each element of y has one sum, in the order of taps.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import BOOL, I64, Type
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.emit.window import AxisValues, read_axes

__all__ = ["write_fold_columns"]


def write_fold_columns(module: Module, symbol: str, kind: Type, rank: int) -> None:
    """Write the kernel `symbol`: buffers x (N * C, taps, places) and y; the parameters are the axes' words.

    A task is one row of an image along its last axis; `size` is that of the image, `places` how many there are of the window.
    """
    with module.kernel(symbol) as b:
        axes = read_axes(b, 0, rank)
        one = b.const(I64, 1)
        taps, places = (prod((axis[name] for axis in axes), start=one) for name in ("taps", "places"))
        outer = axes[:-1]
        rows, outer_taps = (prod((axis[name] for axis in outer), start=one) for name in ("size", "taps"))
        with b.loop(b.begin, b.end) as task:
            x = b.buffer(0, kind).at(task // rows * taps * places)
            y = b.buffer(1, kind).at(task * axes[-1]["size"])
            for i, span in b.vectors(0, axes[-1]["size"], kind):
                y.store(b.const(kind.vector(span.lanes), 0), i, span)
            with b.loop(0, outer_taps) as tap:
                place, meets = _outer_place(b, outer, task % rows, tap)
                with b.when(meets):
                    _add_row(b, kind, axes[-1], (x, tap, place, places), y)


def _outer_place(b: Kernel, axes: Sequence[AxisValues], row: Register, tap: Register) -> tuple[Register, Register]:
    """Return which place of the outer axes puts a tap on a row, and whether there is one."""
    place, meets = b.const(I64, 0), b.const(BOOL, True)
    step, row_rest, tap_rest = b.const(I64, 1), row, tap
    for axis in reversed(axes):
        at = row_rest % axis["size"] + axis["begin"] - tap_rest % axis["taps"] * axis["dilation"]
        row_rest, tap_rest = row_rest // axis["size"], tap_rest // axis["taps"]
        found = at // axis["stride"]
        meets = meets & (at >= 0) & (at % axis["stride"]).eq(0) & (found < axis["places"])
        place, step = place + found * step, step * axis["places"]
    return place, meets


def _add_row(b: Kernel, kind: Type, axis: AxisValues, source: tuple[Pointer, Register, Register, Register], y: Pointer) -> None:
    """Add the last axis' taps of one place of the others."""
    x, outer_tap, outer_place, places = source
    stride, zero = axis["stride"], b.const(I64, 0)
    with b.loop(0, axis["taps"]) as tap:
        shift = tap * axis["dilation"] - axis["begin"]
        number = outer_tap * axis["taps"] + tap
        row = x.at(number * places + outer_place * axis["places"])
        first = b.max((stride - 1 - shift) // stride, zero)
        beyond = b.max(axis["size"] - shift + (stride - 1), zero) // stride
        last = b.min(beyond, axis["places"])

        def adjacent(row: Pointer = row, shift: Register = shift, first: Register = first, last: Register = last) -> None:
            for i, span in b.vectors(first, last, kind):
                y.store(y.load(i + shift, span) + row.load(i, span), i + shift, span)

        def apart(row: Pointer = row, shift: Register = shift, first: Register = first, last: Register = last) -> None:
            for i, span in b.vectors(first, last, kind):
                at, offsets = y.at(i * stride + shift), b.iota(I64, span.lanes) * stride
                if span.lanes == 1:
                    at.store(at.load() + row.load(i))
                else:
                    at.scatter(at.gather(offsets, span.mask) + row.load(i, span), offsets, span.mask)

        b.branch(stride.eq(1), adjacent, apart)
