"""Resample one axis by a filter that is stretched where the axis shrinks; ONNX Resize with antialias.

    first       for every output the number of the element that its first tap reads, which may lie outside of the axis
    weights     (taps, output), whose sums along the taps are 1
    result[o, i, :] = sum over taps t of weights[t, i] * source[o, clamp(first[i] + t), :]

Coordinates are float32, and weights are computed in float64 from them.
"""

from __future__ import annotations

from sardonyx.codegen.emit.module import Kernel, Module
from sardonyx.codegen.emit.types import F32, F64, I32, I64
from sardonyx.codegen.emit.values import Pointer, Register
from sardonyx.codegen.kernels.resize import TABLE_WORDS, coordinate_of, cubic_weight, reads_inside_only

__all__ = ["FARTHEST", "write_stretched", "write_stretched_table"]

FARTHEST = float(1 << 30)
"""Coordinates beyond it are brought back to it: no axis is longer."""


def write_stretched_table(module: Module, symbol: str, *, is_cubic: bool) -> None:
    """Write the kernel `symbol` of one task: buffers first (int32) and weights (float32).

    Parameters: those of `resize.TableWords`, then how many taps there are, and by how much the filter is stretched, as a float.
    """
    with module.kernel(symbol) as b:
        size, output, taps = b.param(0), b.param(1), b.param(TABLE_WORDS)
        shrink = b.param_float(TABLE_WORDS + 1, F64)
        first, weights = b.buffer(0, I32), b.buffer(1, F32)
        exact = b.variable(b.const(F64, 0.0))
        with b.loop(b.begin, b.end), b.loop(0, output) as i:
            coordinate = coordinate_of(b, i)
            coordinate = b.max(b.min(coordinate, FARTHEST), -FARTHEST)
            below = b.call_math("floor", coordinate)
            fraction = (coordinate - below).to(F64)
            start = below.to(I64) + 1 - taps // 2
            first.store(start.to(I32), i)

            def weight(t: Register, fraction: Register = fraction, start: Register = start) -> Register:
                distance = b.abs(((t + 1 - taps // 2).to(F64) - fraction) * shrink)
                part = cubic_weight(b, distance) if is_cubic else b.max(1.0 - distance, b.const(F64, 0.0))
                outside = reads_inside_only(b) & ((start + t < 0) | (start + t >= size))
                return b.select(outside, 0.0, part)

            exact.set(b.const(F64, 0.0))
            with b.loop(0, taps) as t:
                exact.add(weight(t))
            with b.loop(0, taps) as t:
                weights.store((weight(t) / exact.value).to(F32), t * output + i)


def write_stretched(module: Module, symbol: str) -> None:
    """Write the kernel `symbol`: buffers source, result, first and weights; a task is one output, or one o where `inner` is 1.

    Parameters: the length of the axis in the source and in the result, taps, and elements behind the axis.
    """
    with module.kernel(symbol) as b:
        inner = b.param(3)

        def along() -> None:
            with b.loop(b.begin, b.end) as task:
                _write_line(b, task)

        def across() -> None:
            with b.loop(b.begin, b.end) as task:
                _write_output(b, task)

        b.branch(inner.eq(1), along, across)


def _parts(b: Kernel) -> tuple[Pointer, Pointer]:
    return b.buffer(2, I32), b.buffer(3, F32)


def _write_line(b: Kernel, task: Register) -> None:
    """Write all outputs of one o, by vectors along them."""
    size, output, taps = (b.param(place) for place in range(3))
    source, result, (first, weights) = b.buffer(0, F32).at(task * size), b.buffer(1, F32).at(task * output), _parts(b)
    last = (size - 1).to(I32)
    for i, span in b.vectors(0, output, F32):
        start, total = first.load(i, span), b.variable(b.const(F32.vector(span.lanes), 0.0))
        with b.loop(0, taps) as t:
            place = b.max(b.min(start + t.to(I32), last), 0)
            element = source.load(place) if span.lanes == 1 else source.gather(place, span.mask)
            total.set(b.fma(element, weights.load(t * output + i, span), total.value))
        result.store(total.value, i, span)


def _write_output(b: Kernel, task: Register) -> None:
    """Write the elements behind one output, by vectors along them."""
    size, output, taps, inner = (b.param(place) for place in range(4))
    first, weights = _parts(b)
    i = task % output
    source, result = b.buffer(0, F32).at(task // output * size * inner), b.buffer(1, F32).at(task * inner)
    start = first.load(i).to(I64)
    for place, span in b.vectors(0, inner, F32):
        total = b.variable(b.const(F32.vector(span.lanes), 0.0))
        with b.loop(0, taps) as t:
            row = b.max(b.min(start + t, size - 1), 0)
            weight = weights.load(t * output + i).splat(span.lanes)
            total.set(b.fma(source.load(row * inner + place, span), weight, total.value))
        result.store(total.value, place, span)
