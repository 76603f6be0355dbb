"""Divide elements by a power of the squares of their neighbours in other channels; ONNX LRN.

    y[n, c, i] = x[n, c, i] * (bias + alpha / size * sum of x[n, k, i] ** 2 for k around c) ** -beta

The channels around c are (size - 1) // 2 before it and size // 2 behind it. A strip of vectors goes through the channels of a task;
the power has the error of `mathlib.power`.
"""

from __future__ import annotations

from sardonyx.codegen.emit import mathlib
from sardonyx.codegen.emit.module import Module
from sardonyx.codegen.emit.types import F32, Type
from sardonyx.lazy_dataclasses import dataclass

__all__ = ["LrnParams", "write_lrn"]

X, Y = range(2)
"""The buffers of the kernel."""
_BLOCK = 1 << 12
"""Elements of a channel in one task."""
_TASK_SQUARES = 1 << 20
"""About how many squares a task adds up."""


@dataclass(frozen=True, slots=True)
class LrnParams:
    """The integer parameters of `write_lrn`, in their order."""

    images: int
    """How many images there are, each of which has all channels."""
    channels: int
    """Channels of an image."""
    inner: int
    """Elements of a channel."""
    before: int
    """Channels before one that count for it."""
    behind: int
    """Channels behind one that count for it."""

    @property
    def block(self) -> int:
        """Channels of one task."""
        return max(_TASK_SQUARES // (max(min(self.inner, _BLOCK), 1) * (self.before + 1 + self.behind)), 1)

    def words(self) -> list[int]:
        """Return the parameters as the kernel reads them."""
        return [self.channels, self.inner, self.before, self.behind, self.block]

    def tasks(self) -> int:
        """Return how many tasks it is."""
        return self.images * -(-self.channels // self.block) * -(-self.inner // _BLOCK)


def write_lrn(module: Module, symbol: str, kind: Type = F32) -> None:
    """Write the kernel `symbol` for elements of F32 or F64; a task is a block of an image's elements, in a block of channels.

    Behind the words of `LrnParams` follow as floats alpha / size, beta and bias.
    """
    with module.kernel(symbol) as b:
        channels, inner, before, behind, block = (b.param(place) for place in range(5))
        factor, beta, bias = (b.param_float(place, kind) for place in range(5, 8))
        pieces, blocks = (inner + (_BLOCK - 1)) // _BLOCK, (channels + block - 1) // block
        with b.loop(b.begin, b.end) as task:
            group = task // pieces
            image, first_channel = group // blocks * channels * inner, group % blocks * block
            first = task % pieces * _BLOCK
            x, y = b.buffer(X, kind).at(image), b.buffer(Y, kind).at(image)
            with b.loop(first_channel, b.min(first_channel + block, channels)) as channel:
                lowest, highest = b.max(channel - before, 0), b.min(channel + behind + 1, channels)
                for i, span in b.vectors(first, b.min(first + _BLOCK, inner), kind):
                    total = b.variable(b.const(kind.vector(span.lanes), 0.0))
                    with b.loop(lowest, highest) as other:
                        near = x.load(other * inner + i, span)
                        total.set(b.fma(near, near, total.value))
                    base = b.fma(total.value, factor.splat(span.lanes), bias.splat(span.lanes))
                    scale = mathlib.power(b, base, -beta.splat(span.lanes))
                    y.store(x.load(channel * inner + i, span) * scale, channel * inner + i, span)
