"""Divide elements by a power of the squares of their neighbours in other channels; ONNX LRN.

    y[n, c, i] = x[n, c, i] * (bias + alpha / size * sum of x[n, k, i] ** 2 for k around c) ** -beta

The channels around c are (size - 1) // 2 before it and size // 2 behind it. A strip of vectors goes through all channels; the power
has the error of `mathlib.power`.
"""

from __future__ import annotations

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, Type

__all__ = ["BLOCK", "write_lrn"]

X, Y = range(2)
"""The buffers of the kernel."""
BLOCK = 1 << 12
"""Elements of a channel in one task."""


def write_lrn(module: Module, symbol: str, kind: Type = F32) -> None:
    """Write the kernel `symbol` for elements of F32 or F64; a task is a block of an image's elements, in all channels.

    Parameters: channels, elements of a channel, channels before and behind that count, then as floats alpha / size, beta and bias.
    """
    with module.kernel(symbol) as b:
        channels, inner, before, behind = (b.param(place) for place in range(4))
        factor, beta, bias = (b.param_float(place, kind) for place in range(4, 7))
        blocks = (inner + (BLOCK - 1)) // BLOCK
        with b.loop(b.begin, b.end) as task:
            image = task // blocks * channels * inner
            first = task % blocks * BLOCK
            x, y = b.buffer(X, kind).at(image), b.buffer(Y, kind).at(image)
            with b.loop(0, channels) as channel:
                lowest, highest = b.max(channel - before, 0), b.min(channel + behind + 1, channels)
                for i, span in b.vectors(first, b.min(first + BLOCK, inner), kind):
                    total = b.variable(b.const(kind.vector(span.lanes), 0.0))
                    with b.loop(lowest, highest) as other:
                        near = x.load(other * inner + i, span)
                        total.set(b.fma(near, near, total.value))
                    base = b.fma(total.value, factor.splat(span.lanes), bias.splat(span.lanes))
                    scale = mathlib.power(b, base, -beta.splat(span.lanes))
                    y.store(x.load(channel * inner + i, span) * scale, channel * inner + i, span)
